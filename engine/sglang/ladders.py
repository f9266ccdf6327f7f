"""Capture sizes: the engine's ladders, cut at the largest size.

The ladders are the release's (``tables.json``, "ladders"): segments of (first, last, step), the last one open. Source:
SGLang 0.5.23, ``arg_groups/cuda_graph_hook.py``, ``generate_*_cuda_graph_batch_sizes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

Segments = tuple[tuple[int, int | None, int], ...]


def as_segments(rows: Sequence[Sequence[int | None]]) -> Segments:
    """A ladder of ``tables.json`` as a value that can be cached."""
    return tuple((int(first or 0), last, int(step or 1)) for first, last, step in rows)


@lru_cache(maxsize=4096)
def rungs(segments: Segments, largest: int) -> tuple[int, ...]:
    """The ladder's sizes up to ``largest``, ascending."""
    sizes: list[int] = []
    for first, last, step in segments:
        end = largest if last is None else min(last, largest)
        sizes.extend(range(first, end + 1, step))
    return tuple(sizes)


def prefill_sizes(segments: Segments, max_bs: int) -> list[int]:
    """The prefill capture sizes in tokens: the ladder alone."""
    return list(rungs(segments, max_bs))


def decode_sizes(segments: Segments, max_bs: int, *, padding: bool) -> list[int]:
    """The decode capture sizes in requests: the ladder and ``max_bs`` itself; every size where padding is off."""
    sizes = list(rungs(segments, max_bs) if padding else range(1, max_bs + 1))
    if max_bs not in sizes:
        sizes.append(max_bs)
    return sizes
