"""``full_attention_interval``: every n-th layer is attention, the others linear attention (Qwen3-Next, Qwen3.5)."""

from __future__ import annotations

from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import linear_of

_FIELD = "full_attention_interval"


def read(subject: Subject) -> Layers | None:
    """Layer i (from 0) is attention where i + 1 is a multiple of the interval.

    Source: ``sglang/srt/configs/qwen3_next.py``, ``layers_block_type``, 0.5.23.
    """
    interval = subject.text.count(_FIELD)
    if interval is None:
        return None
    if interval == 0:
        raise subject.text.wrong(_FIELD, "An interval of 0 layers")
    linear = linear_of(subject)
    count = subject.needed_count(_FIELD)
    kinds = tuple("attention" if (i + 1) % interval == 0 else linear for i in range(count))
    return Layers(kinds=kinds, evidence=subject.text.at(_FIELD))
