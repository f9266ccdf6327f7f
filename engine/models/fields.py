"""Typed reading of a config's fields: a field of the wrong form is an error that names it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import ConfigUnreadable

MAX_LAYERS = 4096
"""More decoder layers than any model has; a config that says more is a mistake, not a model."""

_MAX_COUNT = 2**53


class Fields:
    """One object of a config and its dotted path.

    ``outer`` is the config around a nested text config, for fields that belong to the whole model.
    """

    __slots__ = ("outer", "path", "values")

    def __init__(self, values: Mapping[str, Any], path: str = "", outer: Fields | None = None) -> None:
        self.values = values
        self.path = path
        self.outer = outer

    def at(self, name: str) -> str:
        """The dotted path of one of its fields."""
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, what: str, remedy: str = "") -> ConfigUnreadable:
        """The error for a field that cannot be understood."""
        return ConfigUnreadable(
            f"{what}.", remedy=remedy or "Correct this field, or give the config unchanged.", field=self.at(name)
        )

    def get(self, name: str) -> Any:
        """The field as it is; None where it is absent."""
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str | None:
        """A string, None where absent or null."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, f"A string is expected, not {_show(value)}")

    def count(self, *names: str) -> int | None:
        """The first of the fields that is given, as a whole number from 0.

        A list with one number a layer (``num_key_value_heads`` of some searched models) answers its largest.
        """
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, list):
                numbers = [self._whole(name, item) for item in value if item is not None]
                if numbers:
                    return max(numbers)
                continue
            return self._whole(name, value)
        return None

    def _whole(self, name: str, value: Any) -> int:
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, f"A whole number is expected, not {_show(value)}")
        if value < 0:
            raise self.wrong(name, f"{_show(value)} is negative")
        if value > _MAX_COUNT:
            raise self.wrong(name, "The number is too large")
        return value

    def flag(self, name: str) -> bool | None:
        """A boolean, None where absent or null."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.wrong(name, f"true or false is expected, not {_show(value)}")

    def object(self, name: str) -> Fields | None:
        """A nested object, None where absent, null or false (some files write ``"rope_scaling": false``)."""
        value = self.values.get(name)
        if value is None or value is False:
            return None
        if isinstance(value, Mapping):
            return Fields(value, self.at(name), self)
        raise self.wrong(name, f"An object is expected, not {_show(value)}")

    def names(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, None where absent or null."""
        value = self._list(name)
        if value is None:
            return None
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.wrong(f"{name}[{index}]", f"A string is expected, not {_show(item)}")
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers, None where absent or null."""
        value = self._list(name)
        if value is None:
            return None
        return tuple(self._whole(f"{name}[{index}]", item) for index, item in enumerate(value))

    def _list(self, name: str) -> Sequence[Any] | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise self.wrong(name, f"A list is expected, not {_show(value)}")
        if len(value) > MAX_LAYERS:
            raise self.wrong(name, f"The list has {len(value)} entries; no model has more than {MAX_LAYERS} layers")
        return value


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_COUNT:
        return "a number too large"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
