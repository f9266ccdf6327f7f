"""What every spelling of a layer pattern shares: what it is given, what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from engine.models.facts import LayerKind
from engine.models.fields import MAX_LAYERS, Fields

_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The kinds of all layers in order, and the field that says so ("" where no field does: plain attention)."""

    kinds: tuple[LayerKind, ...]
    evidence: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A text config to be read for its layers.

    ``types`` are its own model_type and that of the config around it; ``count`` is the number of layers that it
    names, None where it names none.
    """

    text: Fields
    types: tuple[str, ...]
    architectures: tuple[str, ...]
    count: int | None

    def is_a(self, *types: str) -> bool:
        """Whether the inner or the outer model_type is one of these."""
        return any(name in types for name in self.types)

    def fitted(self, field: str, entries: Sequence[_T]) -> tuple[tuple[_T, ...], tuple[str, ...]]:
        """The list with one entry a layer, and a note where it was longer than the layer count.

        Longer lists are published ones (Step-3.5 lists its draft layers too): the first ``count`` entries hold.

        Raises:
            ConfigUnreadable: the list is shorter than the layer count.
        """
        count = self.count
        if count is None or len(entries) == count:
            return tuple(entries), ()
        if len(entries) < count:
            raise self.text.wrong(
                field, f"The list has {len(entries)} entries, but the config says that there are {count} layers"
            )
        return tuple(entries[:count]), (
            f"{self.text.at(field)} has {len(entries)} entries for {count} layers; the first {count} are taken.",
        )

    def needed_count(self, field: str) -> int:
        """The number of layers, where the pattern cannot be laid out without it.

        Raises:
            ConfigUnreadable: the config does not say.
        """
        if self.count is None:
            raise self.text.wrong("num_hidden_layers", f"The layer count is missing; {field} needs it")
        return self.count


Spelling = Callable[[Subject], "Layers | None"]
"""One way in which configs write down their layers; None where this config does not use it."""


def layer_count(fields: Fields) -> int | None:
    """The number of decoder layers that a config names.

    Raises:
        ConfigUnreadable: a number that no model has.
    """
    for name in _COUNTS:
        if fields.has(name):
            count = fields.count(name)
            if count is not None and count > MAX_LAYERS:
                raise fields.wrong(name, f"{count} layers: no model has more than {MAX_LAYERS}")
            return count
    return None
