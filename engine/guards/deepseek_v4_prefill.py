"""Breakable prefill graphs of DeepSeek V4.

## What it does
Looks for DeepSeek V4 with a breakable prefill graph that was asked for by name, outside the context parallelism that
captures a smaller body. Where the engine switched its default off, a note says so.

## Why it is bad
The indexer's scratch space stays pinned in the capture pool: memory runs out in capture, or much less is left for the
KV cache. Naming the backend skips the engine's rule.

## What to do
Leave the prefill backend to the engine; or keep the graph and give few, small buckets, and a smaller `--mem-fraction-
static`.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.steps.graph.prefill_cp import supports_breakable_under_cp


def check(examined: Examined) -> Iterator[Hit]:
    """A warning for a graph asked for by name, a note where the engine switched its default off."""
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "DeepSeek-V4" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if backend != "breakable" or not examined.named("prefill"):
        return
    if not examined.resolution.model.is_deepseek_v4 or supports_breakable_under_cp(examined.resolution):
        return
    message = (
        f"A breakable prefill graph is asked for by name on DeepSeek V4: in SGLang {examined.release} its indexer's "
        "scratch space stays in the capture pool, so that capture can run out of memory."
    )
    remedy = "Leave the prefill backend to the engine, or give few small buckets with --cuda-graph-bs-prefill."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG207",
    slug="deepseek-v4-prefill",
    title="breakable prefill graphs of DeepSeek V4, whose indexer fills the capture pool",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("DSV4_BREAKABLE", "LOCK_BYPASSES_RULES"),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="likely",
    evidence=(
        report(23842, "whether DeepSeek V4's prefill graph is captured, and what it costs"),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, disable_breakable_cudagraph_if_incompatible",
            "DeepSeek V4's indexer scratch is pinned in the capture pool",
        ),
    ),
    check=check,
)
