"""A list of the attention layers, all others recurrent: Bamba, LFM2, GigaChat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.models.facts import LayerKind
from engine.models.families.base import Layers, Subject
from engine.models.families.recurrence import mamba_of

_FIELDS: Mapping[str, Callable[[Subject], LayerKind]] = {
    "attn_layer_indices": mamba_of,
    "full_attn_idxs": lambda _: "shortconv",
    "full_attention_layers": lambda _: "gdn",
}


def read(subject: Subject) -> Layers | None:
    """Indices from 0. Falcon-H1 has the field too, always null: it is read elsewhere."""
    for field, other in _FIELDS.items():
        numbers = subject.text.numbers(field)
        if numbers is None:
            continue
        count = subject.needed_count(field)
        for index, number in enumerate(numbers):
            if number >= count:
                raise subject.text.wrong(f"{field}[{index}]", f"There is no layer {number}: there are {count}, from 0")
        attention, recurrent = set(numbers), other(subject)
        kinds: list[LayerKind] = ["attention" if i in attention else recurrent for i in range(count)]
        return Layers(kinds=tuple(kinds), evidence=subject.text.at(field))
    return None
