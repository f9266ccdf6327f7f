"""Eager against replay, size by size, of graphs that were captured and compared in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from engine.capture.attention.batch import ForwardBatch
from engine.capture.runners.base import CudaGraphRunner
from engine.capture.runners.live import LiveBatches
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.setup import CaptureSetup
from engine.launch import Phase

CONTEXT = 16
"""Tokens that each decode request has behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTimes:
    """One graph at its full size. Times in seconds, the best of the rounds; ``pool_bytes``: what its capture took of
    the shared pool on a GPU, what its operators allocated on a CPU. ``replay_s`` is the way of a batch in serving:
    into the static inputs, metadata, graph, output; ``graph_s`` the graph alone."""

    phase: str
    size: int
    capture_s: float
    eager_s: float
    replay_s: float
    graph_s: float
    pool_bytes: int

    @property
    def ratio(self) -> float:
        """How many times as long eager takes as a replay."""
        return self.eager_s / self.replay_s

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "eager_to_replay": self.ratio}


def times(setup: CaptureSetup, rounds: int) -> Iterator[SizeTimes]:
    """Time every captured graph."""
    for phase, runner in setup.runners.items():
        for size in runner.sizes:
            yield _of_size(phase, runner, size, rounds)


def _of_size(phase: Phase, runner: CudaGraphRunner, size: int, rounds: int) -> SizeTimes:
    """Eager, replay and graph take turns, so that the machine's other load falls on all of them alike."""
    captured, batch = runner.captured[size], _full(runner, size)
    ways: tuple[Callable[[], object], ...] = (
        lambda: runner.runner.forward_eager(batch),
        lambda: runner.replay(batch, size),
        captured.graph.replay,
    )
    best = [float("inf")] * len(ways)
    for turn in range(rounds + 1):
        taken = [_seconds(runner, way) for way in ways]
        if turn:  # the first round warms up
            best = [min(pair) for pair in zip(best, taken, strict=True)]
    return SizeTimes(
        phase=phase,
        size=size,
        capture_s=captured.capture_s,
        eager_s=best[0],
        replay_s=best[1],
        graph_s=best[2],
        pool_bytes=captured.graph.bytes,
    )


def _full(runner: CudaGraphRunner, size: int) -> ForwardBatch:
    live = LiveBatches(runner.runner, seed=size)
    if isinstance(runner, PrefillCudaGraphRunner):
        requests = min(runner.max_requests, size, 2)
        return live.extend(live.split(size, requests), [0] * requests).eager[0]
    return live.decode([CONTEXT] * size).eager[0]


def _seconds(runner: CudaGraphRunner, way: Callable[[], object]) -> float:
    runner.recorder.synchronize()
    begun = time.perf_counter()
    way()
    runner.recorder.synchronize()
    return time.perf_counter() - begun
