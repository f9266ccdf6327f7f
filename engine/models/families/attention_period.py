"""``attn_layer_period`` and ``attn_layer_offset``: an attention layer in every period, Mamba between (Jamba)."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import mamba_of

_FIELD = "attn_layer_period"


def read(subject: Subject) -> Layers | None:
    """Layer i is attention where i mod period is the offset (transformers, ``configuration_jamba.py``)."""
    period = subject.text.count(_FIELD)
    if period is None:
        return None
    if period == 0:
        raise subject.text.wrong(_FIELD, "A period of 0 layers")
    offset = subject.text.count("attn_layer_offset") or 0
    recurrent = mamba_of(subject)
    count = subject.needed_count(_FIELD)
    kinds: list[LayerKind] = ["attention" if i % period == offset else recurrent for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=subject.text.at(_FIELD))
