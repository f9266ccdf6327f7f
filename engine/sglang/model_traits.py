"""What the engine reads off a configuration, one question a function: modality, type, context length, overrides.

Facts: ``sglang/srt/configs/model_config.py`` (0.5.23).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.sglang.hf_config import SUB_KEYS, TEXT_KEYS, HfConfig, plain_config
from engine.sglang.model_tables import ArchitectureLists
from engine.sglang.resolution import Refusal

_MULTIMODAL_OFF = frozenset(
    {
        "Gemma3ForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "Step3VLForConditionalGeneration",
        "InklingForConditionalGeneration",
    }
)
_ROPE = ("rope_scaling", "rope_parameters")  # transformers 5 keeps one value under both names
_PARSERS = ("hf", "mistral")
_MIMO_V2 = frozenset({"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"})
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_DTYPES: Mapping[str, str] = {
    "half": "float16",
    "float16": "float16",
    "float": "float32",
    "float32": "float32",
    "bfloat16": "bfloat16",
}


def refuse_quantize_and_serve(quantization: str | None) -> None:
    """The engine has this switched off.

    Raises:
        Refusal: always; which one depends on the method.
    """
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


def refuse_unknown_parser(name: str | None) -> None:
    """``--model-config-parser``: plug-ins may bring others, but none that a launch tells.

    Raises:
        Refusal: neither "auto" nor a parser that the engine has.
    """
    if name not in (None, "auto", *_PARSERS):
        raise Refusal("ValueError", f"Unknown model-config parser {name!r}. Registered: {list(_PARSERS)}")


def refuse_whole_numbers(config: Mapping[str, Any], lists: ArchitectureLists) -> None:
    """Before 0.5.22 the engine's library takes no whole number for the jitter of DBRX, which DBRX itself has.

    Source: transformers 5.12 (``models/dbrx/configuration_dbrx.py``), with which SGLang 0.5.21 is installed.

    Raises:
        Refusal: in the library's words.
    """
    experts = config.get("ffn_config")
    if lists.since(0, 5, 22) or config.get("model_type") != "dbrx" or not isinstance(experts, Mapping):
        return
    value = experts.get("moe_jitter_eps")
    if not isinstance(value, int):
        return
    kind = type(value).__name__
    field = "Field 'moe_jitter_eps'"
    raise Refusal(
        "StrictDataclassFieldValidationError",
        f"Validation error for field 'moe_jitter_eps':\n    TypeError: {field} with value {value!r} doesn't match any "
        f"type in (<class 'float'>, <class 'NoneType'>). Errors: {field} expected float, got {kind} (value: "
        f"{value!r}); {field} expected NoneType, got {kind} (value: {value!r})",
    )


def refuse_yarn_by_layer(hf: HfConfig, text: HfConfig, lists: ArchitectureLists) -> None:
    """One rope a layer type, YaRN among them: transformers 5.8, which 0.5.14 needs, looks for its length at the top.

    Raises:
        Refusal: the release is 0.5.14, and the configuration is of that form.
    """
    if lists.since(0, 5, 15):
        return
    for config in (hf, text):
        rope = config.get("rope_parameters")
        layers = rope.values() if isinstance(rope, Mapping) and "original_max_position_embeddings" not in rope else ()
        if any(isinstance(layer, Mapping) and layer.get("rope_type") == "yarn" for layer in layers):
            raise Refusal("KeyError", "'original_max_position_embeddings'")


def overrides_of(text: str | None) -> Any:
    """What ``--json-model-override-args`` holds: an object of fields, where the operator wrote it right.

    Raises:
        Refusal: it is not JSON.
    """
    if not text or text == "{}":
        return {}
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Refusal("JSONDecodeError", str(error)) from None


_DERIVED: Mapping[str, tuple[str, frozenset[str]]] = {
    "inkling_mm_model": (
        "InklingMMConfig",
        frozenset(
            (
                "vocab_size",
                "hidden_size",
                "num_hidden_layers",
                "num_attention_heads",
                "num_key_value_heads",
                "head_dim",
                "mamba_chunk_size",
            )
        ),
    )
}
"""The fields that a configuration class only derives, by model type (SGLang 0.5.18, ``configs/inkling.py``)."""


def apply_overrides(hf: HfConfig, overrides: Any, lists: ArchitectureLists) -> None:
    """Write the operator's own fields over the configuration.

    Those of a sub-configuration are merged into it since 0.5.17, those of the rope scaling since 0.5.23.

    Raises:
        Refusal: the overrides are no object, a field is derived, or a value is of the wrong type.
    """
    if not isinstance(overrides, Mapping):
        raise Refusal("AttributeError", f"'{type(overrides).__name__}' object has no attribute 'items'")
    own, derived = _DERIVED.get(str(hf.get("model_type")), ("", frozenset()))
    for key, value in overrides.items():
        if key in derived:
            raise Refusal("AttributeError", f"property '{key}' of '{own}' object has no setter")
        current = hf.get(key)
        if isinstance(value, Mapping) and isinstance(current, HfConfig) and lists.since(0, 5, 17):
            for name, inner in value.items():
                current.put(name, inner)
        elif isinstance(value, Mapping) and key in TEXT_KEYS:
            hf.values[key] = plain_config(value)
        elif isinstance(value, Mapping) and key in SUB_KEYS:  # stays a dictionary: it has no attributes
            hf.values[key] = HfConfig({}, "dict")
        elif key in _ROPE:
            merged = isinstance(value, Mapping) and isinstance(current, Mapping) and lists.since(0, 5, 23)
            hf.values.update(dict.fromkeys(_ROPE, {**current, **value} if merged else value))
        else:
            hf.put(key, value)


def own_text(hf: HfConfig, text: HfConfig) -> HfConfig:
    """What the configuration's own ``get_text_config`` gives."""
    for key in ("text_config", "llm_config", "language_config"):
        sub = hf.get(key)
        if isinstance(sub, HfConfig):
            return sub
    return text if hf.has("thinker_config") else hf


def modality(m: dict[str, Any], hf: HfConfig, text: HfConfig, enable: bool | None, args: Mapping[str, Any]) -> None:
    """Set what the model takes besides text, and which prefill graphs the engine allows it with that."""
    lists: ArchitectureLists = m["lists"]
    names: tuple[str, ...] = m["architectures"]
    transformers = args["model_impl"] == "transformers"
    external = args["SGLANG_EXTERNAL_MM_MODEL_ARCH"] in names
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
    multimodal = bool(
        enable and not m["is_lm_only"] and (lists.any("multimodal", names) or external or towers or dsv41_vision)
    )
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


def quantization_layout(m: dict[str, Any], hf: HfConfig, fp4_experts: str | None) -> None:
    """Set how a mixed checkpoint stores its routed experts."""
    raw = hf.get("quantization_config")
    config: dict[str, Any] = dict(raw) if isinstance(raw, Mapping) else {}
    m["hf_quant_config"] = config
    routed = config.get("routed_experts_quant_method")
    stored = str(config.get("store_dtype") or "").lower() == "mxfp4" and m["lists"].since(0, 5, 20)
    fp4 = routed == "mxfp4" or (m["arch"] in _MIMO_V2 and stored)
    if m["arch"] in m["lists"].of("dsv4") and routed is None:
        fp4 = switch(fp4_experts, usual=True)  # the engine's default where it cannot read the checkpoint's weights
    m["is_fp4_experts"] = fp4
    m["nvfp4_moe"] = (
        str(config.get("quant_algo", "")).upper() == "MIXED_PRECISION"
        and str(config.get("moe_quant_algo", "")).upper() == "NVFP4"
        and config.get("group_size") is not None
    )


def dtype_of(text: HfConfig, asked: str | None) -> str:
    """The type that the weights are loaded in.

    Raises:
        Refusal: an unknown ``--dtype``.
    """
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


def context_length(hf: HfConfig, text: HfConfig, args: Mapping[str, Any]) -> int:
    """The context length in tokens: the configuration's, stretched by its rope scaling, or the operator's.

    Raises:
        Refusal: the operator's is longer than the configuration's.
    """
    asked = args["context_length"]
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
    if asked > derived and not (
        switch(args["SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"]) or switch(args["SGLANG_IS_IN_CI"])
    ):
        raise Refusal(
            "ValueError",
            f"Warning: User-specified context_length ({asked}) is greater than the derived context_length ({derived}). "
            "This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ "
            "from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var "
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
        )
    return int(asked)


def switch(text: str | None, *, usual: bool = False) -> bool:
    """An environment variable of the engine that is a switch."""
    word = (text or "").lower()
    return word in ("true", "1", "yes", "y") or (usual and word not in ("false", "0", "no", "n"))


def uses_kda(config: HfConfig) -> bool:
    """Whether one configuration object declares KDA layers."""
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping) and linear.get("kda_layers"):
        return True
    return (
        "linear_attention" in (config.get("layer_types") or ())
        and config.get("linear_num_heads") is not None
        and config.get("linear_head_dim") is not None
    )


def linear_spec_of(hf: HfConfig, own_text: HfConfig, arch: str, lists: ArchitectureLists) -> dict[str, Any] | None:
    """The release's entry for the model among its softmax/linear hybrids; by architecture, else by class."""
    for spec in lists.linear_specs:
        if arch in spec["architectures"]:
            return spec
    for spec in lists.linear_specs:
        config = own_text if spec["unwrap"] else hf
        if spec["class"] in config.bases and not spec["predicate"]:
            return spec
    return None
