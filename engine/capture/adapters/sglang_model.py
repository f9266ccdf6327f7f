"""The model that an installed engine builds for a capture: its own config with fewer layers. No torch here."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

LEAST_LAYERS = 4
DEPTHS = frozenset(("num_hidden_layers", "n_layer", "n_layers", "num_layers"))


def depth_for(kinds: Sequence[Hashable], wanted: int | None) -> int:
    """The first layers that hold every kind, and at least ``wanted`` (:data:`LEAST_LAYERS`) of them.

    >>> depth_for(["linear"] * 7 + ["full"] + ["linear"] * 4, None)
    8
    """
    last_new = max((kinds.index(kind) + 1 for kind in set(kinds)), default=0)
    return min(max(last_new, wanted or LEAST_LAYERS), len(kinds))


def with_fewer_layers(config: Mapping[str, Any], whole: int, depth: int) -> dict[str, Any]:
    """The config with the first ``depth`` of its ``whole`` layers; what is listed a layer is cut, wherever it stands.

    Cut are lists and patterns with one entry a layer, and lists of layer numbers: counted from 1 where the numbers of
    that part of the config reach ``whole`` and none is 0, otherwise from 0.
    """
    numbers = [n for key, value in config.items() if _numbers_layers(key, value) for n in value]
    from_one = whole in numbers and 0 not in numbers
    return {key: _cut(key, value, whole, depth, last=depth if from_one else depth - 1) for key, value in config.items()}


def _cut(key: str, value: Any, whole: int, depth: int, *, last: int) -> Any:
    if key in DEPTHS and value == whole:
        return depth
    if isinstance(value, Mapping):
        return with_fewer_layers(value, whole, depth)
    if _numbers_layers(key, value):
        return [number for number in value if number <= last]
    listed = isinstance(value, list) or (isinstance(value, str) and "pattern" in key)
    return value[:depth] if listed and len(value) == whole else value


def _numbers_layers(key: str, value: Any) -> bool:
    """Whether the value is a list of layers' numbers, each named once, ascending."""
    return (
        isinstance(value, list)
        and bool(value)
        and ("layer" in key or key.endswith(("idxs", "indices")))
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
        and all(one < other for one, other in itertools.pairwise(value))
    )
