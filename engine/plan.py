"""What will be captured: the sizes of each phase, in order, what that may cost, and what runs eagerly all the same.

An estimate is a range with the source of each end. The lower end of memory is what the engine itself reserves for
graphs when it sizes its static memory; the upper end, and both ends of time, are published figures, which differ by the
model and the GPU. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.guards.base import Examined
from engine.launch import PHASES, Phase
from engine.sglang.derived import uses_mla
from engine.sglang.loading.sizes import most_tokens
from engine.sglang.resolution import Resolution
from engine.verdict import PhaseGraph

RESERVE_SOURCE = "SGLang 0.5.23: srt/arg_groups/memory_hook.py, the reserve for graphs"
DECODE_RESERVE_MIB = 2.0
"""MiB that the engine reserves for each request of the largest decode graph."""
PREFILL_RESERVE_MIB = 8.0
"""MiB that the engine reserves for each prefill size; for MLA models one sum for all."""
PREFILL_MLA_RESERVE_MIB = 1536.0

DECODE_WORST_MIB = 160.0
"""MiB for each request of the largest decode graph in the worst published case: 20 GB a rank at 128 requests.

Nothing is published beyond 128 requests, so the range ends there.
"""
DECODE_WORST_REQUESTS = 128
WORST_SOURCE = "https://github.com/sgl-project/sglang/issues/24453"

SECONDS_A_GRAPH = (0.05, 0.4)
"""Seconds to capture one graph: 0.05 (small model) to 0.4 (14 s for 35 graphs, 12 s for a large model's decode)."""
SECONDS_SOURCE = "https://github.com/vllm-project/vllm/pull/23184, https://github.com/sgl-project/sglang/issues/10088"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A range; ``low_source`` and ``high_source`` say where its ends come from. ``high`` None: nothing is published."""

    unit: str
    low: float
    low_source: str
    high: float | None = None
    high_source: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "low": self.low,
            "low_source": self.low_source,
            "high": self.high,
            "high_source": self.high_source or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """The graphs of one phase. ``sizes`` are in the order of capture, largest first: requests for decode, tokens for
    prefill. ``covers`` is the largest batch that a graph serves; ``eager`` says what runs without one.
    """

    backend: str | None
    sizes: tuple[int, ...]
    covers: int
    eager: str
    memory: Estimate | None = None
    time: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "graphs": len(self.sizes),
            "sizes": list(self.sizes),
            "covers": self.covers,
            "eager": self.eager,
            "memory": None if self.memory is None else self.memory.to_dict(),
            "time": None if self.time is None else self.time.to_dict(),
        }


def capture_plan(examined: Examined, graph: Mapping[Phase, PhaseGraph]) -> Mapping[Phase, PhasePlan]:
    """The plan of a launch that the engine resolved; ``graph`` is what will run, policy included."""
    r = examined.resolution
    load = examined.predicted.prediction.load
    dropped = load is not None and load.prefill == "dropped"
    return {
        phase: _decode(r, graph[phase]) if phase == "decode" else _prefill(r, graph[phase], dropped=dropped)
        for phase in PHASES
        if phase in graph
    }


def _decode(r: Resolution, graph: PhaseGraph) -> PhasePlan:
    sizes = _largest_first(graph.bs or ()) if graph.backend != "disabled" else ()
    if not sizes:
        return PhasePlan(backend=graph.backend, sizes=(), covers=0, eager="every decode batch")
    limit = r.args.max_running_requests
    if limit is not None and limit > sizes[0]:
        eager = f"batches of {sizes[0] + 1} to {limit} requests (--max-running-requests)"
    elif limit is not None:
        eager = "nothing: every batch up to --max-running-requests has a graph"
    else:
        eager = f"batches above {sizes[0]} requests, if memory lets so many run"
    memory = Estimate(
        unit="MiB a GPU",
        low=sizes[0] * DECODE_RESERVE_MIB,
        low_source=RESERVE_SOURCE,
        high=min(sizes[0], DECODE_WORST_REQUESTS) * DECODE_WORST_MIB,
        high_source=WORST_SOURCE,
    )
    return PhasePlan(
        backend=graph.backend, sizes=sizes, covers=sizes[0], eager=eager, memory=memory, time=_time(len(sizes))
    )


def _prefill(r: Resolution, graph: PhaseGraph, *, dropped: bool) -> PhasePlan:
    if graph.backend == "disabled" or dropped or not graph.bs:
        why = "every prefill: the graph is dropped while the model loads" if dropped else "every prefill"
        return PhasePlan(backend=graph.backend, sizes=(), covers=0, eager=why)
    most = most_tokens(r)
    sizes = _largest_first(graph.bs if max(graph.bs) <= most else tuple(size for size in graph.bs if size <= most))
    if not sizes:
        return PhasePlan(backend=graph.backend, sizes=(), covers=0, eager="every prefill: no size fits the context")
    chunk = r.args.chunked_prefill_size
    if chunk is None or chunk <= 0:
        eager = f"batches above {sizes[0]} tokens: prefill is not chunked"
    elif chunk > sizes[0]:
        eager = f"batches of {sizes[0] + 1} to {chunk} tokens (--chunked-prefill-size)"
    else:
        eager = "nothing: every chunk up to --chunked-prefill-size has a graph"
    reserve = PREFILL_MLA_RESERVE_MIB if uses_mla(r) else len(sizes) * PREFILL_RESERVE_MIB
    memory = Estimate(unit="MiB a GPU", low=reserve, low_source=RESERVE_SOURCE)
    return PhasePlan(
        backend=graph.backend, sizes=sizes, covers=sizes[0], eager=eager, memory=memory, time=_time(len(sizes))
    )


def _largest_first(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(sizes), reverse=True))


@lru_cache(maxsize=512)
def _time(graphs: int) -> Estimate:
    low, high = SECONDS_A_GRAPH
    return Estimate(
        unit="s",
        low=round(graphs * low, 1),
        low_source=SECONDS_SOURCE,
        high=round(graphs * high, 1),
        high_source=SECONDS_SOURCE,
    )
