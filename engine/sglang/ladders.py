"""Capture sizes: the engine's ladders, cut at the largest size.

The ladders are the release's (``tables.json``, "ladders"): segments of (first, last, step), the last one open. Source:
SGLang 0.5.23, ``arg_groups/cuda_graph_hook.py``, ``generate_*_cuda_graph_batch_sizes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.errors import InvalidLaunch

Segments = tuple[tuple[int, int | None, int], ...]


def as_segments(rows: Sequence[Sequence[int | None]]) -> Segments:
    """A ladder of ``tables.json`` as a value that can be cached."""
    return tuple((int(first or 0), last, int(step or 1)) for first, last, step in rows)


MOST_SIZES = 100_000
"""More sizes than this are not enumerated: no server captures so many graphs, and the list would exhaust the memory."""


def rungs(segments: Segments, largest: int) -> tuple[int, ...]:
    """The ladder's sizes up to ``largest``, ascending.

    Raises:
        InvalidLaunch: more than :data:`MOST_SIZES` of them.
        TypeError: ``largest`` is no integer.
    """
    first, _, step = segments[-1]
    beyond = largest + 1  # first of all, so that a value that is no number fails as it does in the engine
    if beyond > first + step * MOST_SIZES:
        raise _too_many(largest)
    return _rungs(segments, largest)


@lru_cache(maxsize=512, typed=True)
def _rungs(segments: Segments, largest: int) -> tuple[int, ...]:
    sizes: list[int] = []
    for first, last, step in segments:
        end = largest if last is None else min(last, largest)
        sizes.extend(range(first, end + 1, step))
    return tuple(sizes)


def _too_many(largest: int) -> InvalidLaunch:
    return InvalidLaunch(
        f"A largest capture size of {largest} is beyond anything that a server can capture.",
        remedy="Choose a smaller max_bs.",
        field="arguments",
    )


def prefill_sizes(segments: Segments, max_bs: int) -> list[int]:
    """The prefill capture sizes in tokens: the ladder alone."""
    return list(rungs(segments, max_bs))


def decode_sizes(segments: Segments, max_bs: int, *, padding: bool) -> list[int]:
    """The decode capture sizes in requests: the ladder and ``max_bs`` itself; every size where padding is off."""
    if not padding and max_bs > MOST_SIZES:
        raise _too_many(max_bs)
    sizes = list(rungs(segments, max_bs) if padding else range(1, max_bs + 1))
    if not sizes or max_bs > sizes[-1]:
        sizes.append(max_bs)
    return sizes


def cpu_sizes(largest: int, *, padding: bool) -> list[int]:
    """The sizes of the CPU graph (torch.compile): every size where padding is off."""
    if largest > MOST_SIZES:
        raise _too_many(largest)
    if not padding:
        return list(range(1, largest + 1))
    sizes = {*range(1, 17), *range(18, 31, 2), *range(32, 81, 4), *range(84, largest + 1, 8), largest}
    return sorted(size for size in sizes if size <= largest)
