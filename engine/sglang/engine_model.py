"""The model as the engine sees it: SGLang's ``ModelConfig`` over the engine's configuration object.

Facts: ``sglang/srt/configs/model_config.py`` (0.5.23). Names are the engine's own, so that a step reads as the
function that it follows. The engine builds its ``ModelConfig`` at the first step that asks for it, from the arguments
as they stand then; so does this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine.sglang import model_shapes, model_traits
from engine.sglang.hf_config import HfConfig, read_config, text_config
from engine.sglang.model_tables import ArchitectureLists, architecture_lists, model_classes
from engine.sglang.quantization import MARLIN_SM, parsed_config, verified
from engine.sglang.resolution import Arguments, Refusal
from engine.sglang.state_carrying import StateCarrying, state_carrying_of

if TYPE_CHECKING:
    from engine.models.facts import ModelFacts
    from engine.sglang.releases import Release

_READ = (
    "quantization",
    "context_length",
    "json_model_override_args",
    "model_config_parser",
    "is_embedding",
    "enable_multimodal",
    "dtype",
    "model_impl",
    "quantize_and_serve",
    "language_model_only",
    "disable_hybrid_swa_memory",
)
_VARIABLES = (
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    "SGLANG_IS_IN_CI",
    "SGLANG_EXTERNAL_MM_MODEL_ARCH",
    "SGLANG_DSV4_FP4_EXPERTS",
)
_UNSET: tuple[str | None, ...] = (None,) * len(_VARIABLES)
_KEPT = 512
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

    def __init__(self, facts: ModelFacts, release: str, args: Any, sm: int, environment: Mapping[str, str]) -> None:
        self._facts = facts
        self._source = (facts, release, args, sm, environment)

    @classmethod
    def of(
        cls,
        facts: ModelFacts,
        release: Release,
        args: Any,
        *,
        sm: int = 90,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> EngineModel:
        """The model for one launch: ``args`` is the launch's argument record (``Resolution.args``) or a mapping.

        Nothing is read before the first attribute is asked for; then the arguments' values of that moment count, and
        the answer is kept for other launches of the same model. ``sm`` is the GPU's compute capability (90 for 9.0),
        ``environment`` the launch's.
        """
        return cls(facts, release.text, args, sm, environment)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        # One dictionary for all launches of which the same holds: nothing is copied, and nothing may be written to it.
        self.__dict__ = derived = _derived(*self._source)
        try:
            return derived[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def declared_architectures(self) -> tuple[str, ...]:
        """What config.json itself names, without deriving anything."""
        facts: ModelFacts = self._facts
        return facts.architectures

    @property
    def facts(self) -> ModelFacts:
        """What graphgate read from config.json, without deriving anything."""
        facts: ModelFacts = self._facts
        return facts

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


def _derived(facts: ModelFacts, release: str, args: Any, sm: int, environment: Mapping[str, str]) -> dict[str, Any]:
    values: Mapping[str, Any] = args.__dict__ if isinstance(args, Arguments) else args
    asked = tuple(map(values.get, _READ))
    variables = tuple(map(environment.get, _VARIABLES)) if environment else _UNSET
    key = (id(facts), release, sm >= MARLIN_SM, asked, variables)
    known = _cache.get(key)
    if known is None:
        answer: dict[str, Any] | Refusal
        try:
            answer = _derive(facts, release, dict(zip((*_READ, *_VARIABLES), (*asked, *variables), strict=True)), sm)
            answer["_facts"] = facts
        except Refusal as refusal:
            answer = refusal
        except TypeError as error:  # the configuration holds null or text where the engine reckons with a number
            answer = Refusal("TypeError", str(error))
        if len(_cache) >= _KEPT:
            _cache.pop(next(iter(_cache)), None)
        known = _cache[key] = (facts, answer)  # the facts are kept so that their identity stays theirs
    if isinstance(known[1], Refusal):
        raise Refusal(known[1].type, known[1].message, known[1].stage)
    return known[1]


def _derive(facts: ModelFacts, release: str, args: Mapping[str, Any], sm: int) -> dict[str, Any]:
    if args["quantize_and_serve"]:
        model_traits.refuse_quantize_and_serve(args["quantization"])
    overrides = model_traits.overrides_of(args["json_model_override_args"])
    lists = architecture_lists(release)
    model_traits.refuse_unknown_parser(args["model_config_parser"])
    path = facts.model_id or "the model"
    model_traits.refuse_whole_numbers(facts.config, lists)
    hf, text = read_config(facts.config, model_classes(release), path)
    model_traits.refuse_yarn_by_layer(hf, text, lists)
    if overrides:
        model_traits.apply_overrides(hf, overrides, lists)
        text = text_config(hf)
    m: dict[str, Any] = {"hf": hf, "text": text, "lists": lists, "model_type": hf.get("model_type")}
    m["text_model_type"] = text.get("model_type")
    names = hf.get("architectures")
    gemma_embedding = bool(text.get("model_type") == "gemma3_text" and text.get("use_bidirectional_attention", False))
    m["is_embedding_gemma"] = gemma_embedding
    # Before 0.5.20 the option came too late to count.
    asked = lists.since(0, 5, 20) and args["language_model_only"]
    m["is_lm_only"] = bool(asked or hf.get("language_model_only", False))
    enable = args["enable_multimodal"]
    if names is None:
        word = "subscriptable" if enable is None else "iterable"
        raise Refusal(
            "TypeError",
            f"'NoneType' object is not {word}" if enable is None else "argument of type 'NoneType' is not iterable",
        )
    if not names:  # the operator wrote an empty list over the model's own
        raise Refusal("IndexError", "list index out of range")
    architectures = tuple(names)
    m["architectures"] = architectures
    m["arch"] = architectures[0]
    model_traits.modality(m, hf, text, enable, args)
    model_traits.quantization_layout(m, hf, args["SGLANG_DSV4_FP4_EXPERTS"])
    m["attention_chunk_size"] = text.get("attention_chunk_size")
    m["sliding_window_size"] = next(
        (v for k in ("sliding_window_size", "sliding_window", "window_size") if (v := text.get(k)) is not None), None
    )
    m["is_generation"] = (
        not gemma_embedding and not lists.any("not_generation", architectures) and not args["is_embedding"]
    )
    m["use_ngram_embedding"] = bool(hf.get("use_ngram_embedding", False))
    m["dtype"] = model_traits.dtype_of(text, args["dtype"])
    m["context_len"] = model_traits.context_length(hf, text, args)
    m |= model_shapes.derive(text, architectures, lists)
    m["is_hybrid_swa"] = (
        model_shapes.is_hybrid_swa(text, architectures, lists) and not args["disable_hybrid_swa_memory"]
    )
    m["has_attention_sinks"] = model_shapes.has_attention_sinks(text, architectures, lists)
    raw = hf.get("quantization_config")
    nemotron = m["model_type"] == "nemotron_h" or any(name.startswith("NemotronH") for name in architectures)
    config = parsed_config(raw, hf.get("compression_config"), since=lists.since, nemotron=nemotron)
    if raw is not None:
        hf.values["quantization_config"] = config
    m["quant_config"] = config
    m["quantization_config"] = hf.get("quantization_config")
    m["quantization"] = verified(config, args["quantization"], lists.quantization_methods, sm, lists.since)
    m["is_deepseek_dsa"] = m["arch"] in lists.of("dsa") and hf.get("index_topk") is not None
    m["is_deepseek_v4"] = m["arch"] in lists.of("dsv4")
    m["is_minimax_sparse"] = m["arch"] in lists.of("minimax_sparse")
    own_text = model_traits.own_text(hf, text)
    m["uses_kda_attention"] = any(model_traits.uses_kda(c) for c in (hf, own_text))
    m["state_carrying"] = state_carrying_of(hf, text, own_text, lists)
    m["linear_spec"] = model_traits.linear_spec_of(hf, own_text, m["arch"], lists)
    return m
