"""``mamba_step``: one attention layer in every few (PLaMo 2)."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import mamba_of

_FIELD = "mamba_step"


def read(subject: Subject) -> Layers | None:
    """Layer i is Mamba unless i mod step is step // 2; of at most step // 2 layers only the last is attention.

    Source: ``modeling_plamo.py`` of the published model, ``is_mamba``.
    """
    text = subject.text
    step = text.count(_FIELD)
    if step is None or text.flag("mamba_enabled") is False:
        return None
    if step < 2:
        raise text.wrong(_FIELD, f"A step of {step} leaves no room for both kinds of layer")
    count = subject.needed_count(_FIELD)
    recurrent = mamba_of(subject)
    kinds: list[LayerKind]
    if count <= step // 2:
        kinds = ["attention" if i == count - 1 else recurrent for i in range(count)]
    else:
        kinds = [recurrent if i % step != step // 2 else "attention" for i in range(count)]
    return Layers(kinds=tuple(kinds), evidence=text.at(_FIELD))
