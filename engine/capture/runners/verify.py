"""Is a replay what the same batch gives eagerly? Outputs and everything that the pass may write, compared.

The graphs of all phases and sizes take turns, in an order of the seed's, so that each replays after others have; and
an output is looked at only after a later replay of its phase had the chance to write over it.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.report import GraphReport, Replay
from engine.capture.runners.base import CudaGraphRunner
from engine.capture.runners.compare import TOLERANCE, Ownership, outputs_apart
from engine.capture.runners.live import LiveBatches, Passes
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.runners.scenarios import Scenario, decode_scenarios, prefill_scenarios
from engine.launch import Phase


@dataclass(slots=True)
class Verified:
    """What became of one phase's graphs: ``graphs`` by size, ascending, or the failure that ended the phase."""

    graphs: tuple[GraphReport, ...] = ()
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told while verification goes on: ``done`` for each graph whose replays are all compared, ``turn`` (n, of)
    after each round over all graphs."""

    done: Callable[[Phase, GraphReport], None] = lambda *_: None
    turn: Callable[[int, int], None] = lambda *_: None


def verify(
    runners: Mapping[Phase, CudaGraphRunner], *, seed: int, replays: int, listener: Listener | None = None
) -> dict[Phase, Verified]:
    """Replay every graph ``replays`` times, each time another batch, and compare with eager runs of the same."""
    told = listener or Listener()
    turns = {phase: _Turns(phase, runner, seed, replays, told) for phase, runner in runners.items()}
    for turn in range(replays):
        order = [(phase, size) for phase, runner in runners.items() for size in runner.sizes]
        random.Random(seed * 1009 + turn).shuffle(order)  # noqa: S311 - an order that a report can be made again with
        for phase, size in order:
            turns[phase].take(size, turn)
        told.turn(turn + 1, replays)
    for taken in turns.values():
        taken.settle_last()
    return {phase: Verified(tuple(taken.reports()), taken.failure) for phase, taken in turns.items()}


def matches(report: GraphReport) -> bool:
    """Whether every replay stayed within the tolerance, and touched nothing of anybody else's."""
    return all(replay.ok for replay in report.replays)


@dataclass(slots=True)
class _Compared:
    """The replays of one graph, so far."""

    replays: list[Replay] = field(default_factory=list)
    eager_s: list[float] = field(default_factory=list)
    replay_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """A replay whose output is still to be compared."""

    size: int
    expected: Tensor
    actual: list[Tensor]
    replay: Replay


class _Turns:
    """The graphs of one phase."""

    def __init__(self, phase: Phase, runner: CudaGraphRunner, seed: int, replays: int, told: Listener) -> None:
        self.failure: Exception | None = None
        self._phase: Phase = phase
        self._runner = runner
        self._replays = replays
        self._told = told
        self._tolerance = TOLERANCE[runner.runner.dtype]
        self._scenarios = {size: _scenarios(runner, size, seed + size) for size in runner.sizes}
        self._compared = {size: _Compared() for size in runner.sizes}
        self._pending: _Pending | None = None

    def take(self, size: int, turn: int) -> None:
        """One comparison with the graph of ``size``, unless an earlier one ended the phase."""
        self._guarded(lambda: self._compare(size, turn))

    def settle_last(self) -> None:
        """Compare the last output, after one more replay, over padding alone, of the largest graph."""

        def settle() -> None:
            self._runner.replay_padding(self._runner.sizes[-1])
            self._runner.recorder.synchronize()
            self._settle()

        self._guarded(settle)

    def reports(self) -> list[GraphReport]:
        """What is known of each graph that was compared at all."""
        return [self._report(size) for size, compared in self._compared.items() if compared.replays]

    def _guarded(self, run: Callable[[], None]) -> None:
        if self.failure is not None:
            return
        try:
            run()
        except Exception as failure:  # whatever a replay raises is what the report is about
            self.failure = failure

    def _compare(self, size: int, turn: int) -> None:
        scenarios = self._scenarios[size]
        name, make = scenarios[turn % len(scenarios)]
        runner, pools = self._runner, self._runner.runner.pools
        passes = make()
        before = pools.snapshot()
        eager, eager_s = self._timed(lambda: [runner.runner.forward_eager(batch) for batch in passes.eager])
        expected = pools.snapshot()
        pools.restore(before)
        replayed, replay_s = self._timed(lambda: self._replayed(passes, size))
        owned = Ownership(pools, passes.eager)
        states = owned.apart(expected)
        intruded = owned.intruded(before)
        self._settle()
        first = passes.replayed[0]
        padding = size - runner.rows(first)
        self._pending = _Pending(
            size=size,
            expected=torch.cat(eager),
            actual=replayed,
            replay=Replay(
                scenario=name,
                lengths=_lengths(passes.eager[0]),
                padding=padding,
                passes=len(passes.replayed),
                max_abs=0.0,
                max_rel=0.0,
                state_abs=states.absolute,
                state_rel=states.relative,
                intruded=intruded,
                ok=states.relative <= self._tolerance and not intruded,
            ),
        )
        if len(passes.eager) == len(passes.replayed) == 1:
            self._compared[size].eager_s.append(eager_s)
            self._compared[size].replay_s.append(replay_s)

    def _replayed(self, passes: Passes, size: int) -> list[Tensor]:
        # What a long prompt leaves for its last chunk goes through the next size that holds it, as in serving.
        runner = self._runner
        return [runner.replay(batch, None if i else size) for i, batch in enumerate(passes.replayed)]

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        apart = outputs_apart(torch.cat(pending.actual), pending.expected)
        compared = self._compared[pending.size].replays
        compared.append(
            replace(
                pending.replay,
                max_abs=apart.absolute,
                max_rel=apart.relative,
                ok=pending.replay.ok and apart.relative <= self._tolerance,
            )
        )
        if len(compared) == self._replays:
            self._told.done(self._phase, self._report(pending.size))

    def _report(self, size: int) -> GraphReport:
        captured, compared = self._runner.captured[size], self._compared[size]
        replays = compared.replays
        return GraphReport(
            size=size,
            capture_s=captured.capture_s,
            bytes=captured.graph.bytes,
            operators=captured.graph.operators,
            segments=captured.graph.segments,
            eager_s=statistics.median(compared.eager_s or [0.0]),
            replay_s=statistics.median(compared.replay_s or [0.0]),
            tolerance=self._tolerance,
            max_abs=max(r.max_abs for r in replays),
            max_rel=max(r.max_rel for r in replays),
            state_abs=max(r.state_abs for r in replays),
            state_rel=max(r.state_rel for r in replays),
            replays=tuple(replays),
        )

    def _timed(self, run: Callable[[], list[Tensor]]) -> tuple[list[Tensor], float]:
        self._runner.recorder.synchronize()
        begun = time.perf_counter()
        result = run()
        self._runner.recorder.synchronize()
        return result, time.perf_counter() - begun


def _scenarios(runner: CudaGraphRunner, size: int, seed: int) -> list[Scenario]:
    live = LiveBatches(runner.runner, seed)
    most = runner.runner.pools.requests.max_context
    if isinstance(runner, PrefillCudaGraphRunner):
        return prefill_scenarios(live, size, runner.max_requests, most)
    return decode_scenarios(live, size, most)


def _lengths(batch: ForwardBatch) -> tuple[int, ...]:
    if batch.mode == "decode":
        return tuple(batch.prefix_lens.tolist())
    return tuple(batch.query_start_loc.diff().tolist())
