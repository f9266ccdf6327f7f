"""``layer_group_size``: the last layer of every group is attention (Ling and Ring linear models)."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import linear_of

_FIELD = "layer_group_size"


def read(subject: Subject) -> Layers | None:
    """A number: the last layer of every group of that size is attention. A list: 1 marks a linear layer.

    Source: ``sglang/srt/configs/bailing_hybrid.py``, ``layers_block_type``, 0.5.23.
    """
    text = subject.text
    if not text.has(_FIELD):
        return None
    linear = linear_of(subject)
    kinds: list[LayerKind]
    if isinstance(text.get(_FIELD), list):
        marks, notes = subject.fitted(_FIELD, text.numbers(_FIELD) or ())
        kinds = [linear if mark == 1 else "attention" for mark in marks]
        return Layers(kinds=tuple(kinds), evidence=text.at(_FIELD), notes=notes)
    size = text.count(_FIELD) or 0
    count = subject.needed_count(_FIELD)
    kinds = ["attention" if size == 0 or (i + 1) % size == 0 else linear for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=text.at(_FIELD))
