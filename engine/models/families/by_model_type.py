"""Models whose layers follow from what the model is: no field lists them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_ALL: Mapping[str, LayerKind] = {
    "mamba": "mamba",
    "falcon_mamba": "mamba",
    "mamba2": "mamba2",
    "falcon_h1": "attention+mamba2",
    "rwkv": "rwkv",
    "rwkv4": "rwkv",
    "rwkv5": "rwkv",
    "rwkv6": "rwkv",
    "rwkv7": "rwkv",
}
"""Every layer is of that kind. Falcon-H1 has both mixers in every layer (``sglang/srt/configs/falcon_h1.py``)."""


def read(subject: Subject) -> Layers | None:
    """One kind for all layers, by model_type."""
    for name in subject.types:
        if name in _ALL:
            count = subject.needed_count("model_type")
            return Layers(kinds=(_ALL[name],) * count, evidence=subject.text.at("model_type"))
    return None
