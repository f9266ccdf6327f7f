"""Read what one SGLang release knows about models, and write it as data.

Run it with a Python environment in which that release of SGLang can be imported (see docs/releases.md)::

    python scripts/extract_model_classes.py 0.5.23 engine/sglang/releases

writes ``releases/0.5.23/model_classes.json``: for every ``model_type`` the values that its configuration class
fills in where a config.json is silent, which attributes follow others, its text sub-configuration and the hybrid
classes it belongs to; and ``releases/0.5.23/architectures.json``: what the engine's own functions answer for every
architecture name that its sources mention. Only facts are written: no code, no texts.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import re
import sys
import types
from pathlib import Path
from typing import Any

from _source_tables import architecture_names, inline_tables

with contextlib.suppress(ImportError):  # lets the release be imported on a machine without a GPU, where provided
    import fake_gpu  # type: ignore[import-not-found] # noqa: F401

_ATTRIBUTES = """
add_full_attention_sink_bias add_swa_attention_sink_bias attention_chunk_size attention_other_setting
attention_projection_layout attn_config block_configs block_size candidate_block_size compress_ratios
compression_config
decoder_layers dtype dual_chunk_attention_config encoder_layers engram_layer_ids first_k_dense_replace
full_attention_interval has_lightning_layers has_minicpm_sparse_attention hc_mult head_dim hidden_size
hybrid_layer_pattern index_head_dim index_kpool index_kpool_compress index_n_heads
index_skip_topk_offset index_topk index_topk_freq index_topk_pattern indexer_budget indexer_compress_ratio
indexer_head_dim indexer_kv_heads indexer_n_heads indexer_types intermediate_size is_causal is_hybrid_swa
kv_lora_rank language_model_only layer_types layers_block_type learnable_sink linear_attn_config linear_head_dim
linear_num_heads linear_num_key_heads linear_num_value_heads local_layer_ids loop_num mamba_chunk_size
matryoshka_dimensions max_position_embeddings max_seq_len max_sequence_length mhc mixer_types mlp_hidden_act
model_max_length moe_intermediate_size mtp_num_hidden_layers multi_query multi_query_group_num n_group n_head_kv
n_routed_experts n_shared_experts new_decoder_architecture ngram_embedding_n num_attention_groups
num_attention_heads num_attention_heads_per_layer num_experts num_experts_per_tok num_hidden_layers
num_key_value_heads num_kv_heads num_local_experts num_loops num_mtp_layers num_nextn_predict_layers
num_shared_experts prefix_lm q_lora_rank qk_nope_head_dim qk_rope_head_dim quantization_config rope_parameters
rope_scaling seq_length sliding_window sliding_window_pattern sliding_window_size sparse_attention_config
swa_head_dim swa_kv_lora_rank swa_num_key_value_heads swa_qk_rope_head_dim swa_v_head_dim tie_word_embeddings topk_group
topk_method
use_bidirectional_attention use_dsa use_kda use_mla use_mla_nope use_ngram_embedding use_sliding_window v_head_dim
vision_n_layers vision_vocab_size vocab_size window_size zero_expert_num
"""
ATTRIBUTES = tuple(_ATTRIBUTES.split())
COUNTS = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "kv_lora_rank",
    "max_position_embeddings",
    "num_attention_heads",
    "num_experts",
    "num_hidden_layers",
    "num_key_value_heads",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "sliding_window",
    "v_head_dim",
    "vocab_size",
)
TOWER = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
SUB_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
OTHER_SUB_CONFIGS = ("vision_config", "audio_config", "sound_config")
TABLES = {
    "mamba_radix_cache": "_MAMBA_RADIX_CACHE_ARCHS",
    "mamba_extra_buffer": "_MAMBA_EXTRA_BUFFER_ARCHS",
    "deepseek_family": "_DEEPSEEK_FAMILY_ARCHS",
    "allreduce_fusion": "_FLASHINFER_ALLREDUCE_FUSION_ARCHS",
}
FOLLOWS = ("num_key_value_heads", "head_dim", "v_head_dim", "lightning_nh")


def plain(value: Any) -> Any:
    """The value as JSON can hold it; an object that it cannot hold raises."""
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    raise TypeError(type(value).__name__)


def read(config: Any) -> dict[str, Any]:
    """The attributes of interest of one configuration object; absent ones are left out."""
    out: dict[str, Any] = {}
    for name in ATTRIBUTES:
        with contextlib.suppress(Exception):
            out[name] = plain(getattr(config, name))
    return out


def follows(cls: Any) -> dict[str, str]:
    """Which attributes copy another one, or are computed from two, where nobody gives them."""
    out: dict[str, str] = {}
    for name, rule, arguments, expected in (
        ("num_key_value_heads", "num_attention_heads", {"num_attention_heads": 48, "hidden_size": 4800}, 48),
        ("head_dim", "hidden_size//num_attention_heads", {"num_attention_heads": 50, "hidden_size": 6100}, 122),
        ("head_dim", "qk_rope_head_dim", {"qk_rope_head_dim": 36}, 36),
        ("head_dim", "qk_nope_head_dim+qk_rope_head_dim", {"qk_rope_head_dim": 36, "qk_nope_head_dim": 300}, 336),
        ("v_head_dim", "head_dim", {"head_dim": 222}, 222),
        ("swa_head_dim", "head_dim", {"head_dim": 222}, 222),
        ("swa_v_head_dim", "v_head_dim", {"v_head_dim": 224}, 224),
        ("swa_v_head_dim", "head_dim", {"head_dim": 222}, 222),
    ):
        for nothing in ({}, {name: None}):
            with contextlib.suppress(Exception):
                if name not in out and getattr(cls(**arguments, **nothing), name, None) == expected:
                    out[name] = rule
    return out


def ignores(cls: Any, known: dict[str, Any]) -> list[str]:
    """Attributes of interest that the class overwrites whatever the file says."""
    out = []
    for name, default in known.items():
        if isinstance(default, bool) or not isinstance(default, int):
            continue
        with contextlib.suppress(Exception):
            if getattr(cls(**{name: default + 16}), name) == default:
                out.append(name)
    return out


def model_classes() -> dict[str, Any]:
    """model_type -> what its configuration class says."""
    common = importlib.import_module("sglang.srt.utils.hf_transformers.common")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    registry = dict(common._CONFIG_REGISTRY)
    names = sorted({*CONFIG_MAPPING.keys(), *registry})
    out: dict[str, Any] = {}
    for name in names:
        try:
            cls = registry.get(name) or CONFIG_MAPPING[name]
        except Exception as error:  # a class that needs a library that is not here
            print(f"left out: {name}: {error}", file=sys.stderr)
            continue
        row: dict[str, Any] = {"class": cls.__name__, "bases": hybrid_classes(cls)}
        if name in registry:
            row["registry"] = True
        row["map"] = attribute_map_of(cls)
        try:
            default = cls()
        except Exception:
            row["no_default"] = True
            out[name] = row
            continue
        row["defaults"] = read(default)
        row |= sub_configs(cls, default)
        with contextlib.suppress(Exception):
            text = default.get_text_config()
            row["get_text_config"] = next(
                (k for k in SUB_CONFIGS if getattr(default, k, None) is text), "" if text is default else "?"
            )
        if "vocab_size" in row["defaults"] or any(key in row["sub"] for key in SUB_CONFIGS):
            row["follows"] = follows(cls)
            row["ignores"] = ignores(cls, row["defaults"])
            row |= peculiarities(cls, row["defaults"])
            with contextlib.suppress(KeyError):  # a file is read by the library's own class first
                if CONFIG_MAPPING[name] is not cls:
                    row["not_null"] |= peculiarities(CONFIG_MAPPING[name], {})["not_null"]
        else:  # a tower, or no language model at all
            row["defaults"] = {k: v for k, v in row["defaults"].items() if k in TOWER}
        out[name] = {k: v for k, v in row.items() if v is False or v not in ({}, [], None)}
    return out


def sub_configs(cls: Any, default: Any) -> dict[str, Any]:
    """The class's text and tower configurations: of which class, with which defaults, present without the file or not.

    ``dynamic`` lists those whose class the file's own ``model_type`` decides.
    """
    from transformers import PretrainedConfig

    declared = getattr(cls, "sub_configs", None) or {}
    sub: dict[str, Any] = {}
    dynamic = []
    for key in (*SUB_CONFIGS, *OTHER_SUB_CONFIGS):
        kind = declared.get(key)
        if kind is not None and not getattr(kind, "model_type", ""):
            dynamic.append(key)
        config = getattr(default, key, None)
        absent = not isinstance(config, PretrainedConfig)
        if absent and isinstance(kind, type) and key not in dynamic:
            with contextlib.suppress(Exception):
                config = kind()
        if isinstance(config, PretrainedConfig):
            sub[key] = sub_config(config, text=key in SUB_CONFIGS) | ({"absent": True} if absent else {})
        elif hasattr(default, key):
            sub[key] = None
    return {"sub": sub, "dynamic": dynamic}


def sub_config(config: Any, *, text: bool) -> dict[str, Any]:
    """One sub-configuration's class and defaults; of a tower only its size."""
    from transformers import PretrainedConfig

    known = read(config)
    row: dict[str, Any] = {"model_type": config.model_type, "class": type(config).__name__}
    row["map"] = attribute_map_of(type(config))
    if not text:
        row["defaults"] = {k: known[k] for k in TOWER if k in known}
        return row
    row |= {"defaults": known, "bases": hybrid_classes(type(config)), "follows": follows(type(config))}
    row |= peculiarities(type(config), known)
    for inner in SUB_CONFIGS:
        inside = getattr(config, inner, None)
        if isinstance(inside, PretrainedConfig):
            row["inner"] = {"key": inner, **sub_config(inside, text=True)}
    return row


def peculiarities(cls: Any, known: dict[str, Any]) -> dict[str, Any]:
    """What the class does to values that it is given.

    ``flat_text``: text fields at the top of the file reach the text configuration; ``gated_window``: a sliding window
    counts only with ``use_sliding_window``; ``architectures``: the class names its own; ``not_null``: the type of a
    count that it does not take as null.
    """
    out: dict[str, Any] = {}
    probe = {"num_attention_heads": 52, "hidden_size": 5200, "num_hidden_layers": 4, "vocab_size": 4444}
    with contextlib.suppress(Exception):
        if cls(**probe).text_config.vocab_size == probe["vocab_size"]:
            out["flat_text"] = True
    with contextlib.suppress(Exception):
        off = cls(sliding_window=77, use_sliding_window=False).sliding_window
        on = cls(sliding_window=77, use_sliding_window=True).sliding_window
        if (off, on) == (None, 77):
            out["gated_window"] = bool(known.get("use_sliding_window", False))
    not_null = {}
    for name in COUNTS:
        try:
            cls(**{name: None})
        except Exception as error:
            found = re.search(rf"Field '{name}' expected (\w+), got NoneType", str(error))
            if found:
                not_null[name] = found.group(1)
    out["not_null"] = not_null
    with contextlib.suppress(Exception):
        named = cls(architectures=["NoSuchForCausalLM"]).architectures
        if named != ["NoSuchForCausalLM"] and named:
            out["architectures"] = list(named)
    return out


def attribute_map_of(cls: Any) -> dict[str, str]:
    """The attributes of interest that the class keeps under another name."""
    return {k: v for k, v in (getattr(cls, "attribute_map", None) or {}).items() if k in ATTRIBUTES}


def hybrid_classes(cls: Any) -> list[str]:
    """The class's ancestors among the ones that the engine tells state-carrying models by."""
    configs = importlib.import_module("sglang.srt.configs")
    wanted = {v for v in vars(configs).values() if isinstance(v, type)}
    wanted |= {spec.config_class for spec in linear_specs()}
    return list(dict.fromkeys(c.__name__ for c in cls.__mro__ if c in wanted))


def linear_specs() -> list[Any]:
    """The release's registry of softmax/linear hybrids; empty where it has none."""
    try:
        module = importlib.import_module("sglang.srt.configs.linear_attn_model_registry")
    except ImportError:
        return []
    importlib.import_module("sglang.srt.configs")
    return list(module._LINEAR_ATTN_MODEL_REGISTRY)


def shapes(module: Any, architecture: str) -> dict[str, Any]:
    """What the engine derives for an architecture from a configuration with every shape attribute in it."""
    values: dict[str, Any] = dict.fromkeys(ATTRIBUTES, None)
    values |= {
        "head_dim": 80, "v_head_dim": 112, "swa_head_dim": 81, "swa_v_head_dim": 82, "kv_lora_rank": 512,
        "qk_nope_head_dim": 30, "qk_rope_head_dim": 7, "index_head_dim": 64, "hidden_size": 6400,
        "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 10, "vocab_size": 1000,
        "sliding_window": 128, "compress_ratios": [], "loop_num": 3, "num_loops": 5, "encoder_layers": 2,
        "decoder_layers": 3, "use_mla": True, "vision_vocab_size": 77, "swa_kv_lora_rank": 1,
        "swa_qk_rope_head_dim": 1, "hc_mult": 1, "use_mla_nope": False,
    }  # fmt: skip
    out: dict[str, Any] = {}
    for label, change in (("with_lora", {}), ("without_lora", {"kv_lora_rank": None}), ("no_mla", {"use_mla": False})):
        config = types.SimpleNamespace(**{**values, **change}, architectures=[architecture], model_type="probe")
        model = object.__new__(module.ModelConfig)
        model.hf_config = model.hf_text_config = config
        model.is_draft_model = False
        try:
            model._derive_model_shapes()
            out[label] = [model.attention_arch.name, model.head_dim, model.v_head_dim, model.num_attention_layers]
        except Exception as error:
            out[label] = [type(error).__name__]
    return out


def architectures(version: str) -> dict[str, Any]:
    """What the release answers for each architecture: one list of names a question."""
    del version
    module = importlib.import_module("sglang.srt.configs.model_config")
    root = Path(importlib.import_module("sglang.srt").__path__[0])
    names = architecture_names(root)
    questions = {
        "multimodal": "is_multimodal_model",
        "audio": "is_audio_model",
        "encoder_decoder": "is_encoder_decoder_model",
        "local_attention": "is_local_attention_model",
        "piecewise_disabled": "is_piecewise_cuda_graph_disabled_model",
        "multimodal_piecewise": "is_multimodal_piecewise_cuda_graph_supported",
        "multimodal_breakable": "is_multimodal_breakable_cuda_graph_supported",
        "hybrid_swa": "is_hybrid_swa_model",
    }
    out: dict[str, Any] = {"names": names}
    for label, function in questions.items():
        ask = getattr(module, function, None)
        out[label] = None if ask is None else [n for n in names if yes(ask, [n])]
    out["not_generation"] = [n for n in names if not yes(module.is_generation_model, [n])]
    out["no_multimodal_chunked_prefill"] = [
        n for n in names if not yes(module.is_multimodal_chunked_prefill_supported, [n])
    ]
    sinks = []
    for n in names:
        model = object.__new__(module.ModelConfig)
        model.hf_config = types.SimpleNamespace(architectures=[n])
        model.hf_text_config = types.SimpleNamespace()
        with contextlib.suppress(Exception):
            if model._detect_attention_sinks():
                sinks.append(n)
    out["attention_sinks"] = sinks
    shape = {n: shapes(module, n) for n in names}
    plain_shape = shapes(module, "NoSuchForCausalLM")
    out["shapes"] = {n: s for n, s in shape.items() if s != plain_shape}
    out["plain_shape"] = plain_shape
    try:
        overrides = importlib.import_module("sglang.srt.arg_groups.overrides")
    except ImportError:  # until 0.5.14
        out |= inline_tables(root, names, importlib.import_module("sglang.srt.server_args").ServerArgs)
    else:
        for label, table in TABLES.items():
            out[label] = sorted(getattr(overrides, table, ()))
    for label, function in (
        ("dsa", "is_deepseek_dsa"),
        ("dsv4", "is_deepseek_v4"),
        ("minimax_sparse", "is_minimax_sparse"),
    ):
        ask = getattr(module, function, None) or getattr(module, function.replace("dsa", "nsa"), None)
        probe = {"index_topk": 2048}
        out[label] = (
            None if ask is None else [n for n in names if yes(ask, types.SimpleNamespace(architectures=[n], **probe))]
        )
    out["linear_specs"] = [
        {
            "class": spec.config_class.__name__,
            "architectures": list(spec.arch_names),
            "radix": spec.uses_mamba_radix_cache,
            "extra_buffer": getattr(spec, "support_mamba_cache_extra_buffer", False),
            "unwrap": spec.unwrap_text_config,
            "predicate": getattr(spec, "config_predicate", None) is not None,
        }
        for spec in linear_specs()
    ]
    quantization = importlib.import_module("sglang.srt.layers.quantization")
    out["quantization_methods"] = list(quantization.QUANTIZATION_METHODS)
    return out


def yes(ask: Any, argument: Any) -> bool:
    """The answer, or no where the question fails."""
    try:
        return bool(ask(argument))
    except Exception:
        return False


def main() -> None:
    version, folder = sys.argv[1], Path(sys.argv[2]) / sys.argv[1]
    logging.disable(logging.WARNING)
    importlib.import_module("sglang.srt.server_args")
    folder.mkdir(parents=True, exist_ok=True)
    made = f"scripts/extract_model_classes.py {version} engine/sglang/releases"
    for name, data in (("model_classes", model_classes()), ("architectures", architectures(version))):
        text = json.dumps({"made_by": made, name: data}, indent=0, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


main()
