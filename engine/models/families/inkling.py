"""``use_sconv``: a short convolution on top of every attention layer (Inkling)."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject

_FIELD = "use_sconv"


def read(subject: Subject) -> Layers | None:
    """Every layer is attention and carries convolution state (``sglang/srt/configs/inkling.py``, 0.5.23)."""
    if not subject.text.flag(_FIELD):
        return None
    count = subject.needed_count(_FIELD)
    kinds: list[LayerKind] = ["attention+shortconv"] * count
    return Layers(kinds=tuple(kinds), evidence=subject.text.at(_FIELD))
