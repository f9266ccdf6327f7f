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


_COMPUTED: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "MiniCPMHybridConfig": _minicpm,
    "BailingHybridConfig": _bailing,
    "NemotronHConfig": _nemotron_h,
    "NemotronHPuzzleConfig": _nemotron_h,
}


def compute(class_name: str, values: dict[str, Any]) -> None:
    """Fill in what that class computes; nothing for a class that computes nothing of interest."""
    function = _COMPUTED.get(class_name)
    if function is not None:
        function(values)
