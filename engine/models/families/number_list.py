"""A list with one number a layer: ``attn_type_list`` (MiniMax), ``hybrid_layer_pattern`` (MiMo)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_FIELDS: Mapping[str, Mapping[int, LayerKind]] = {
    "attn_type_list": {0: "lightning", 1: "attention"},
    "hybrid_layer_pattern": {0: "attention", 1: "sliding_attention"},
}


def read(subject: Subject) -> Layers | None:
    """MiniMax: 0 lightning attention, 1 softmax attention. MiMo: 0 full attention, 1 sliding window."""
    for field, kinds in _FIELDS.items():
        numbers = subject.text.numbers(field)
        if not numbers:
            continue
        numbers, notes = subject.fitted(field, numbers)
        for index, number in enumerate(numbers):
            if number not in kinds:
                raise subject.text.wrong(f"{field}[{index}]", f"{number} is no known layer", "Known are 0 and 1.")
        return Layers(kinds=tuple(kinds[n] for n in numbers), evidence=subject.text.at(field), notes=notes)
    return None
