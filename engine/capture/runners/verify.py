"""Is a replay what the same batch gives eagerly? Outputs and everything that the pass may write, compared."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.report import GraphReport, Replay
from engine.capture.runners.base import Captured, CudaGraphRunner
from engine.capture.runners.live import LiveBatches
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.runners.scenarios import Scenario, decode_scenarios, prefill_scenarios

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference, relative to the eager tensor's largest magnitude. Replay and eager run the same operators and
differ only by the shapes that padding gives them: rounding, several times over, in that type."""


def verify(runner: CudaGraphRunner, captured: Captured, *, seed: int, replays: int) -> GraphReport:
    """Replay one graph ``replays`` times, each time another batch, and compare with eager runs of the same batches."""
    live = LiveBatches(runner.runner, seed + captured.size)
    scenarios = _scenarios(runner, captured.size, live)
    tolerance = TOLERANCE[runner.runner.dtype]
    pairs = [_one(runner, captured.size, scenarios[i % len(scenarios)], tolerance) for i in range(replays)]
    compared = [replay for replay, _, _ in pairs]
    return GraphReport(
        size=captured.size,
        capture_s=captured.capture_s,
        bytes=captured.graph.bytes,
        operators=captured.graph.operators,
        segments=captured.graph.segments,
        eager_s=statistics.median(eager for _, eager, _ in pairs),
        replay_s=statistics.median(replayed for _, _, replayed in pairs),
        tolerance=tolerance,
        max_abs=max(r.max_abs for r in compared),
        max_rel=max(r.max_rel for r in compared),
        state_abs=max(r.state_abs for r in compared),
        state_rel=max(r.state_rel for r in compared),
        replays=tuple(compared),
    )


def matches(report: GraphReport) -> bool:
    """Whether every replay stayed within the tolerance."""
    return all(replay.ok for replay in report.replays)


def _scenarios(runner: CudaGraphRunner, size: int, live: LiveBatches) -> list[Scenario]:
    if isinstance(runner, PrefillCudaGraphRunner):
        return prefill_scenarios(live, size, runner.max_requests)
    return decode_scenarios(live, size, runner.runner.pools.requests.max_context)


def _one(runner: CudaGraphRunner, size: int, scenario: Scenario, tolerance: float) -> tuple[Replay, float, float]:
    name, make = scenario
    pools = runner.runner.pools
    batch = make()
    before = pools.snapshot()
    expected, eager_s = _timed(runner, lambda: runner.runner.forward_eager(batch))
    expected_state = pools.snapshot()
    pools.restore(before)
    actual, replay_s = _timed(runner, lambda: runner.replay(batch, size))
    outputs = _difference([actual], [expected])
    # Row 0 of every pool is padding's.
    states = _difference([t[1:] for _, t in pools.named()], [t[1:] for t in expected_state])
    replay = Replay(
        scenario=name,
        lengths=_lengths(batch),
        padding=size - runner.rows(batch),
        max_abs=outputs[0],
        max_rel=outputs[1],
        state_abs=states[0],
        state_rel=states[1],
        ok=max(outputs[1], states[1]) <= tolerance,
    )
    return replay, eager_s, replay_s


def _lengths(batch: ForwardBatch) -> tuple[int, ...]:
    if batch.mode == "decode":
        return tuple(batch.prefix_lens.tolist())
    return tuple(batch.query_start_loc.diff().tolist())


def _timed(runner: CudaGraphRunner, run: Callable[[], Tensor]) -> tuple[Tensor, float]:
    runner.recorder.synchronize()
    begun = time.perf_counter()
    result = run()
    runner.recorder.synchronize()
    return result, time.perf_counter() - begun


def _difference(actual: list[Tensor], expected: list[Tensor]) -> tuple[float, float]:
    """Largest absolute and largest relative difference over all pairs; anything not finite counts as the largest."""
    worst_abs = worst_rel = 0.0
    for one, other in zip(actual, expected, strict=True):
        if one.numel() == 0:
            continue
        gap = float((one.double() - other.double()).abs().max())
        scale = float(other.double().abs().max())
        worst_abs = max(worst_abs, _finite(gap))
        worst_rel = max(worst_rel, _finite(gap / max(scale, 1e-6)))
    return worst_abs, worst_rel


def _finite(value: float) -> float:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else sys.float_info.max
