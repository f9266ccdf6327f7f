"""``hybrid_override_pattern``: one character a layer (Nemotron-H and Nemotron Nano)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.fields import MAX_LAYERS

_FIELD = "hybrid_override_pattern"
_KINDS: Mapping[str, LayerKind] = {"M": "mamba2", "*": "attention", "-": "mlp", "E": "moe"}


def read(subject: Subject) -> Layers | None:
    """One character a layer: M Mamba-2, * attention, - MLP, E mixture of experts.

    Source: ``sglang/srt/configs/nemotron_h.py``, 0.5.23.
    """
    pattern = subject.text.text(_FIELD)
    if not pattern:
        return None
    if len(pattern) > MAX_LAYERS:
        raise subject.text.wrong(_FIELD, f"The pattern has {len(pattern)} characters; no model has that many layers")
    characters, notes = subject.fitted(_FIELD, pattern)
    for index, character in enumerate(characters):
        if character not in _KINDS:
            raise subject.text.wrong(
                f"{_FIELD}[{index}]", f"{character!r} is no known layer", f"Known are {' '.join(_KINDS)}."
            )
    return Layers(kinds=tuple(_KINDS[c] for c in characters), evidence=subject.text.at(_FIELD), notes=notes)
