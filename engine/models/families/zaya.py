"""ZAYA1 in its first form: no list of names, attention and experts in turn."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject


def read(subject: Subject) -> Layers | None:
    """Even layers are attention with convolved queries and keys, odd layers are mixtures of experts.

    ``zaya_layers`` ("a" for attention, else the number of experts) takes precedence; it sets the layer count too.
    Source: ``sglang/srt/configs/zaya.py``, ``full_attention_layer_ids``, 0.5.23.
    """
    if not subject.is_a("zaya"):
        return None
    text = subject.text
    listed = text.get("zaya_layers")
    kinds: list[LayerKind]
    if isinstance(listed, list) and listed:
        kinds = ["attention+shortconv" if entry == "a" else "moe" for entry in listed]
        return Layers(kinds=tuple(kinds), evidence=text.at("zaya_layers"))
    if not text.has("cca") and not text.has("zaya_use_mod"):
        return None
    count = subject.needed_count("cca")
    kinds = ["attention+shortconv" if i % 2 == 0 else "moe" for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=text.at("cca" if text.has("cca") else "model_type"))
