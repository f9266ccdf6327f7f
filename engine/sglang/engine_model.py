"""The model as the engine sees it: SGLang's ``ModelConfig`` over the engine's configuration object.

Facts: ``sglang/srt/configs/model_config.py`` (0.5.23). Names are the engine's own, so that a step reads as the
function that it follows. The engine builds its ``ModelConfig`` at the first step that asks for it, from the arguments
as they stand then; so does this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.sglang import model_shapes
from engine.sglang.hf_config import HfConfig, read_config
from engine.sglang.model_tables import ArchitectureLists, architecture_lists, model_classes
from engine.sglang.quantization import parsed_config, verified
from engine.sglang.resolution import Refusal
from engine.sglang.state_carrying import StateCarrying, state_carrying_of

if TYPE_CHECKING:
    from engine.models.facts import ModelFacts
    from engine.sglang.releases import Release

_MULTIMODAL_OFF = frozenset(
    {
        "Gemma3ForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "Step3VLForConditionalGeneration",
        "InklingForConditionalGeneration",
    }
)
_MIMO_V2 = frozenset({"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"})
_GLM_NEXT_TYPES = ("glm5_next", "glm5_next_text")
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_DTYPES: Mapping[str, str] = {
    "half": "float16",
    "float16": "float16",
    "float": "float32",
    "float32": "float32",
    "bfloat16": "bfloat16",
}
_READ = (
    "quantization",
    "context_length",
    "json_model_override_args",
    "is_embedding",
    "enable_multimodal",
    "dtype",
    "model_impl",
    "quantize_and_serve",
    "language_model_only",
    "disable_hybrid_swa_memory",
)
_KEPT = 256
_cache: dict[tuple[Any, ...], tuple[Any, dict[str, Any] | Refusal]] = {}


class EngineModel:
    """What the engine derives from config.json. Read-only.

    ``hf`` and ``text`` are its configuration objects (one and the same for a text-only model). ``dtype`` is
    "float16", "bfloat16" or "float32"; ``context_len`` in tokens; ``attention_arch`` "MLA", "MHA" or "SSM";
    ``quantization`` the method it serves the checkpoint with. Reading any attribute of a model that the engine cannot
    read raises the engine's refusal.
    """

    hf: HfConfig
    text: HfConfig
    architectures: tuple[str, ...]
    arch: str
    model_type: str
    text_model_type: str
    lists: ArchitectureLists
    is_lm_only: bool
    is_multimodal: bool
    is_audio_model: bool
    is_image_understandable_model: bool
    is_multimodal_chunked_prefill_supported: bool
    is_multimodal_breakable_cuda_graph_supported: bool
    is_multimodal_piecewise_cuda_graph_supported: bool
    is_piecewise_cuda_graph_disabled_model: bool
    is_encoder_decoder: bool
    is_local_attention_model: bool
    is_generation: bool
    is_embedding_gemma: bool
    is_fp4_experts: bool
    nvfp4_moe: bool
    hf_quant_config: dict[str, Any]
    quant_config: dict[str, Any] | None
    quantization: str | None
    dtype: str
    context_len: int
    attention_arch: str
    head_dim: int
    v_head_dim: int
    swa_head_dim: int
    swa_v_head_dim: int
    has_asymmetric_kv: bool
    has_attention_sinks: bool
    num_attention_heads: int | None
    num_key_value_heads: int | None
    num_hidden_layers: int
    num_attention_layers: int
    num_nextn_predict_layers: int | None
    hidden_size: int
    vocab_size: int
    attention_chunk_size: int | None
    sliding_window_size: int | None
    is_hybrid_swa: bool
    use_ngram_embedding: bool
    is_deepseek_dsa: bool
    is_deepseek_v4: bool
    is_minimax_sparse: bool
    uses_kda_attention: bool
    state_carrying: StateCarrying | None
    linear_spec: dict[str, Any] | None
    quantization_config: dict[str, Any] | None

    def __init__(self, facts: ModelFacts, release: str, args: Any, sm: int) -> None:
        self._source = (facts, release, args, sm)

    @classmethod
    def of(cls, facts: ModelFacts, release: Release, args: Any, *, sm: int = 90) -> EngineModel:
        """The model for one launch: ``args`` is the launch's argument record (``Resolution.args``) or a mapping.

        Nothing is read before the first attribute is asked for; then the arguments' values of that moment count, and
        the answer is kept for other launches of the same model. ``sm`` is the GPU's compute capability (90 for 9.0).
        """
        return cls(facts, release.text, args, sm)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        facts, release, args, sm = self._source
        self.__dict__.update(_derived(facts, release, args, sm))
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def declared_architectures(self) -> tuple[str, ...]:
        """What config.json itself names, without deriving anything."""
        facts: ModelFacts = self._source[0]
        return facts.architectures

    @property
    def use_mla(self) -> bool:
        """Whether the engine runs its MLA attention backends."""
        return bool(self.attention_arch == "MLA")

    def total_kv_heads(self) -> int:
        """Key/value heads of the whole model (``get_total_num_kv_heads``)."""
        return model_shapes.total_kv_heads(self.hf, self.text, self.attention_arch)

    def get_num_kv_heads(self, tensor_parallel_size: int, dcp_size: int = 1) -> int:
        """Key/value heads a GPU, at least one."""
        return max(1, self.total_kv_heads() // (tensor_parallel_size // dcp_size))

    def get_num_attention_heads(self, tensor_parallel_size: int) -> int:
        """Query heads a GPU, at least one."""
        return max(1, (self.num_attention_heads or 0) // tensor_parallel_size)


def _value(args: Any, name: str) -> Any:
    return args.get(name) if isinstance(args, Mapping) else getattr(args, name, None)


def _derived(facts: ModelFacts, release: str, args: Any, sm: int) -> dict[str, Any]:
    asked = tuple(_value(args, name) for name in _READ)
    key = (id(facts), release, sm, asked)
    known = _cache.get(key)
    if known is None:
        answer: dict[str, Any] | Refusal
        try:
            answer = _derive(facts, release, dict(zip(_READ, asked, strict=True)), sm)
        except Refusal as refusal:
            answer = refusal
        if len(_cache) >= _KEPT:
            _cache.pop(next(iter(_cache)), None)
        known = _cache[key] = (facts, answer)  # the facts are kept so that their identity stays theirs
    if isinstance(known[1], Refusal):
        raise Refusal(known[1].type, known[1].message, known[1].stage)
    return known[1]


def _derive(facts: ModelFacts, release: str, args: Mapping[str, Any], sm: int) -> dict[str, Any]:
    if args["quantize_and_serve"]:
        _refuse_quantize_and_serve(args["quantization"])
    overrides = _overrides(args["json_model_override_args"])
    lists = architecture_lists(release)
    path = facts.model_id or "the model"
    hf, text = read_config(facts.config, model_classes(release), path)
    _apply_overrides(hf, overrides)
    m: dict[str, Any] = {"hf": hf, "text": text, "lists": lists, "model_type": hf.get("model_type")}
    m["text_model_type"] = text.get("model_type")
    names = hf.get("architectures")
    gemma_embedding = bool(text.get("model_type") == "gemma3_text" and text.get("use_bidirectional_attention", False))
    m["is_embedding_gemma"] = gemma_embedding
    m["is_lm_only"] = bool(args["language_model_only"] or hf.get("language_model_only", False))
    enable = args["enable_multimodal"]
    if names is None:
        word = "subscriptable" if enable is None else "iterable"
        raise Refusal(
            "TypeError",
            f"'NoneType' object is not {word}" if enable is None else "argument of type 'NoneType' is not iterable",
        )
    architectures = tuple(names)
    m["architectures"] = architectures
    m["arch"] = architectures[0]
    _modality(m, hf, text, enable, args["model_impl"])
    _quantization_layout(m, hf)
    m["attention_chunk_size"] = text.get("attention_chunk_size")
    m["sliding_window_size"] = next(
        (v for k in ("sliding_window_size", "sliding_window", "window_size") if (v := text.get(k)) is not None), None
    )
    m["is_generation"] = (
        not gemma_embedding and not lists.any("not_generation", architectures) and not args["is_embedding"]
    )
    m["use_ngram_embedding"] = bool(hf.get("use_ngram_embedding", False))
    m["dtype"] = _dtype(text, args["dtype"])
    m["context_len"] = _context_length(hf, text, args["context_length"])
    m |= model_shapes.derive(text, architectures, lists)
    m["is_hybrid_swa"] = (
        model_shapes.is_hybrid_swa(text, architectures, lists) and not args["disable_hybrid_swa_memory"]
    )
    m["has_attention_sinks"] = model_shapes.has_attention_sinks(text, architectures, lists)
    raw = hf.get("quantization_config")
    config = parsed_config(raw, hf.get("compression_config"))
    if raw is not None:
        hf.values["quantization_config"] = config
    m["quant_config"] = config
    m["quantization_config"] = hf.get("quantization_config")
    m["quantization"] = verified(config, args["quantization"], lists.quantization_methods, sm)
    m["is_deepseek_dsa"] = m["arch"] in lists.of("dsa") and hf.get("index_topk") is not None
    m["is_deepseek_v4"] = m["arch"] in lists.of("dsv4")
    m["is_minimax_sparse"] = m["arch"] in lists.of("minimax_sparse")
    own_text = _own_text(hf, text)
    m["uses_kda_attention"] = any(_uses_kda(c) for c in (hf, own_text))
    m["state_carrying"] = state_carrying_of(hf, text, own_text, lists.linear_specs)
    m["linear_spec"] = _linear_spec(hf, own_text, m["arch"], lists)
    return m


def _refuse_quantize_and_serve(quantization: str | None) -> None:
    methods = ("modelopt", "modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "nvfp4_online")
    if quantization not in methods:
        raise Refusal(
            "ValueError",
            f"quantize_and_serve requires ModelOpt quantization (set with --quantization {{{', '.join(methods)}}})",
        )
    raise Refusal(
        "NotImplementedError",
        "quantize_and_serve functionality is currently disabled due to compatibility issues. Please use the separate "
        "quantize-then-deploy workflow instead. Step 1: Quantize and export model. Step 2: Deploy the exported model.",
    )


def _overrides(text: str | None) -> dict[str, Any]:
    if not text or text == "{}":
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise Refusal("JSONDecodeError", str(error)) from None
    return value if isinstance(value, dict) else {}


def _apply_overrides(hf: HfConfig, overrides: Mapping[str, Any]) -> None:
    for key, value in overrides.items():
        current = hf.get(key)
        if isinstance(value, Mapping) and isinstance(current, HfConfig):
            current.values.update(value)
        elif key in ("rope_scaling", "rope_parameters") and isinstance(value, Mapping) and isinstance(current, Mapping):
            hf.values["rope_scaling"] = hf.values["rope_parameters"] = {**current, **value}
        else:
            hf.values[key] = value


def _own_text(hf: HfConfig, text: HfConfig) -> HfConfig:
    """What the configuration's own ``get_text_config`` gives."""
    for key in ("text_config", "llm_config", "language_config"):
        sub = hf.get(key)
        if isinstance(sub, HfConfig):
            return sub
    return text if hf.has("thinker_config") else hf


def _modality(m: dict[str, Any], hf: HfConfig, text: HfConfig, enable: bool | None, model_impl: str | None) -> None:
    lists: ArchitectureLists = m["lists"]
    names: tuple[str, ...] = m["architectures"]
    transformers = model_impl == "transformers"
    if enable is None:
        if names[0] in _MULTIMODAL_OFF and not transformers:
            enable = False
        else:
            text_only_mimo = names[0] == "MiMoV2ForCausalLM" and not (
                hf.has("vision_config") and hf.has("audio_config")
            )
            enable = not text_only_mimo
    towers = hf is not text or (transformers and (hf.has("vision_config") or hf.has("audio_config")))
    dsv41_vision = m["model_type"] == "deepseek_v41" and (hf.get("vision_n_layers") or 0) > 0
    multimodal = bool(enable and not m["is_lm_only"] and (lists.any("multimodal", names) or towers or dsv41_vision))
    m["is_multimodal"] = multimodal
    m["is_audio_model"] = bool(enable and lists.any("audio", names))
    m["is_image_understandable_model"] = multimodal and (hf.get("vision_config") is not None or dsv41_vision)
    m["is_multimodal_chunked_prefill_supported"] = bool(
        enable and not lists.any("no_multimodal_chunked_prefill", names)
    )
    piecewise = lists.any("multimodal_piecewise", names)
    m["is_piecewise_cuda_graph_disabled_model"] = lists.any("piecewise_disabled", names) or (
        multimodal and not piecewise
    )
    m["is_multimodal_piecewise_cuda_graph_supported"] = bool(enable and piecewise)
    m["is_multimodal_breakable_cuda_graph_supported"] = bool(enable and lists.any("multimodal_breakable", names))
    m["is_encoder_decoder"] = lists.any("encoder_decoder", names)
    m["is_local_attention_model"] = lists.any("local_attention", names)


def _quantization_layout(m: dict[str, Any], hf: HfConfig) -> None:
    raw = hf.get("quantization_config")
    config: dict[str, Any] = dict(raw) if isinstance(raw, Mapping) else {}
    m["hf_quant_config"] = config
    routed = config.get("routed_experts_quant_method")
    fp4 = routed == "mxfp4" or (m["arch"] in _MIMO_V2 and str(config.get("store_dtype") or "").lower() == "mxfp4")
    if m["arch"] in m["lists"].of("dsv4") and routed is None:
        fp4 = True  # the engine's default where it cannot read the checkpoint's weights
    m["is_fp4_experts"] = fp4
    m["nvfp4_moe"] = (
        str(config.get("quant_algo", "")).upper() == "MIXED_PRECISION"
        and str(config.get("moe_quant_algo", "")).upper() == "NVFP4"
        and config.get("group_size") is not None
    )


def _dtype(text: HfConfig, asked: str | None) -> str:
    own = text.get("dtype")
    own = _DTYPES.get(own, "float32") if isinstance(own, str) else "float32"
    asked = (asked or "auto").lower()
    if asked == "auto":
        if own != "float32":
            return own
        return "bfloat16" if str(text.get("model_type") or "").startswith("gemma") else "float16"
    if asked not in _DTYPES:
        raise Refusal("ValueError", f"Unknown dtype: {asked}")
    return _DTYPES[asked]


def _context_length(hf: HfConfig, text: HfConfig, asked: int | None) -> int:
    rope = text.get("rope_scaling")
    factor: Any = 1
    if isinstance(rope, Mapping) and rope:
        factor = rope.get("factor", 1)
        if "original_max_position_embeddings" in rope or rope.get("rope_type") == "llama3":
            factor = 1
    derived = 2048
    for key in _CONTEXT_KEYS:
        value = text.get(key)
        if value is not None:
            derived = int(factor * value)
            break
    if asked is None:
        return min(derived, 8192) if (hf.get("architectures") or [""])[0] == "EmbeddingGemma2Model" else derived
    if asked > derived:
        raise Refusal(
            "ValueError",
            f"Warning: User-specified context_length ({asked}) is greater than the derived context_length ({derived}). "
            "This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ "
            "from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var "
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
        )
    return asked


def _uses_kda(config: HfConfig) -> bool:
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping) and linear.get("kda_layers"):
        return True
    return (
        "linear_attention" in (config.get("layer_types") or ())
        and config.get("linear_num_heads") is not None
        and config.get("linear_head_dim") is not None
    )


def _linear_spec(hf: HfConfig, own_text: HfConfig, arch: str, lists: ArchitectureLists) -> dict[str, Any] | None:
    for spec in lists.linear_specs:
        if arch in spec["architectures"]:
            return spec
    for spec in lists.linear_specs:
        config = own_text if spec["unwrap"] else hf
        if spec["class"] in config.bases and not spec["predicate"]:
            return spec
    return None
