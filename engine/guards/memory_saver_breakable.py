"""Breakable graphs under the memory saver for graphs.

## What it does
Looks for `--enable-memory-saver` with `SGLANG_MEMORY_SAVER_CUDA_GRAPH` set while the graph of a phase is breakable,
the default of prefill.

## Why it is bad
The breakable backend raises `NotImplementedError` when it is built, after the weights are loaded. Trainers that pause
and resume a server meet it, because the backend became the default.

## What to do
Switch prefill graphs off by name, or leave the variable unset: weights and cache are still paused, graphs stay.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.launch import PHASES

_TRUE = ("true", "1")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for each phase whose graph is breakable."""
    if not examined.args.enable_memory_saver:
        return
    if examined.launch.environment.get("SGLANG_MEMORY_SAVER_CUDA_GRAPH", "").lower() not in _TRUE:
        return
    for phase in PHASES:
        if examined.resolution.graph[phase].backend != "breakable":
            continue
        if phase == "prefill" and not examined.captures_prefill:
            continue
        message = (
            f"--enable-memory-saver with SGLANG_MEMORY_SAVER_CUDA_GRAPH, and {phase} graphs breakable: SGLang "
            f"{examined.release} raises NotImplementedError when it builds them, after the weights are loaded."
        )
        remedy = f"Write --cuda-graph-backend-{phase} disabled, or leave SGLANG_MEMORY_SAVER_CUDA_GRAPH unset."
        suggestion = with_graph(examined.launch.arguments, examined.predicted.release, phase, "backend", "disabled")
        yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion, phase=phase))


RULE = Rule(
    id="GG214",
    slug="memory-saver-breakable",
    title="breakable graphs with SGLANG_MEMORY_SAVER_CUDA_GRAPH",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("MEMORY_SAVER",),
    phase=None,
    backend="breakable",
    severity="error",
    confidence="certain",
    evidence=(
        report(27948, "the memory saver and breakable graphs", pull=True),
        report(1998, "graphs and the memory saver in a trainer", repository="THUDM/slime"),
        source(
            "0.5.23",
            "model_executor/runner_backend/breakable_cuda_graph_backend.py, __init__",
            "memory saver mode raises NotImplementedError",
        ),
    ),
    check=check,
)
