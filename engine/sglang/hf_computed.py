"""Attributes that a configuration class computes from several fields, by the class's name.

One function a class; each reads and writes the attribute values of one configuration object. Facts:
``sglang/srt/configs/<family>.py`` (0.5.23).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MINICPM_ATTENTION = frozenset({"minicpm4", "minicpm", "standard", "attention", "attn"})


def _minicpm(values: dict[str, Any]) -> None:
    mixers = values.get("mixer_types") or ["minicpm4"]
    values["has_lightning_layers"] = any(str(m).startswith("lightning") for m in mixers)
    sparse = values.get("sparse_config") is not None
    values["has_minicpm_sparse_attention"] = sparse and any(m in _MINICPM_ATTENTION for m in mixers)


def _bailing(values: dict[str, Any]) -> None:
    values["use_kda"] = values.get("short_conv_kernel_size") is not None


def _nemotron_h(values: dict[str, Any]) -> None:
    blocks = values.get("hybrid_override_pattern")
    if not isinstance(blocks, str | list):
        blocks = values.get("layers_block_type")
    if isinstance(blocks, str | list):
        values["num_hidden_layers"] = len(blocks)
    if values.get("chunk_size") is not None:
        values["mamba_chunk_size"] = values["chunk_size"]


def _olmo3(values: dict[str, Any]) -> None:
    """The engine serves OLMo 3 with its OLMo 2 model."""
    names = values.get("architectures")
    if names is None:
        values["architectures"] = ["Olmo2ForCausalLM"]
    elif "Olmo3ForCausalLM" in names:
        values["architectures"] = [*(n for n in names if n != "Olmo3ForCausalLM"), "Olmo2ForCausalLM"]


def _dbrx(values: dict[str, Any]) -> None:
    attention = values.get("attn_config")
    if isinstance(attention, Mapping) and attention.get("kv_n_heads") is not None:
        values["num_key_value_heads"] = attention["kv_n_heads"]


def _bloom(values: dict[str, Any]) -> None:
    if values.get("n_embed") is not None:
        values["hidden_size"] = values["n_embed"]


def _kimi_linear(values: dict[str, Any]) -> None:
    if values.get("n_routed_experts") is None:
        values["n_routed_experts"] = values.get("num_experts")


def _kimi_wrapper(values: dict[str, Any]) -> None:
    """The wrapper shows its language model's quantization as its own."""
    text: Any = values.get("text_config")
    if text is not None and values.get("quantization_config") is None:
        values["quantization_config"] = text.get("quantization_config")


_COMPUTED: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "MiniCPMHybridConfig": _minicpm,
    "BailingHybridConfig": _bailing,
    "BloomConfig": _bloom,
    "DbrxConfig": _dbrx,
    "KimiK25Config": _kimi_wrapper,
    "KimiK3Config": _kimi_wrapper,
    "KimiLinearConfig": _kimi_linear,
    "NemotronHConfig": _nemotron_h,
    "NemotronHPuzzleConfig": _nemotron_h,
    "Olmo3Config": _olmo3,
}


def prepare(class_name: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The file's fields as the class takes them: Muse Glimmer lifts its text configuration to the top."""
    text = config.get("text_config")
    if class_name != "MuseGlimmerConfig" or not isinstance(text, Mapping):
        return config
    lifted = {k: v for k, v in text.items() if k not in ("architectures", "model_type")}
    return {**{k: v for k, v in config.items() if k != "text_config"}, **lifted}


def compute(class_name: str, values: dict[str, Any]) -> None:
    """Fill in what that class computes; nothing for a class that computes nothing of interest."""
    function = _COMPUTED.get(class_name)
    if function is not None:
        function(values)
