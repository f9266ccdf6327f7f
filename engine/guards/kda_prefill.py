"""Breakable prefill graphs of Kimi delta attention.

## What it does
Looks for a model with Kimi delta attention whose breakable prefill graph was asked for by name, on releases whose own
rule switches it off by default. Where the engine did so, a note says so.

## Why it is bad
Until 0.5.23 the inputs of a break between two captured segments are kept as weak references, and another bucket may
have reused their memory. A KDA hybrid with three buckets died of an illegal memory access on its first request; other
models answered wrongly.

## What to do
Leave the prefill backend to the engine, or capture a single bucket.

## Exceptions
GLM-5-Next is validated from 0.5.22 on.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph


def check(examined: Examined) -> Iterator[Hit]:
    """A warning for a graph asked for by name, a note where the engine switched its default off."""
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "KDA" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if backend != "breakable" or not examined.named("prefill"):
        return
    model = examined.resolution.model
    if not model.uses_kda_attention or len(examined.prefill.bs or ()) < 2:
        return
    if examined.since(0, 5, 22) and "Glm5NextForConditionalGeneration" in model.architectures:
        return
    message = (
        f"A breakable prefill graph of {len(examined.prefill.bs or ())} sizes is asked for by name on {model.arch}, a "
        f"model with Kimi delta attention: SGLang {examined.release} keeps inputs between captured segments as weak "
        "references, and a report shows an illegal memory access on the first request."
    )
    remedy = "Leave the prefill backend to the engine, or capture one bucket with --cuda-graph-bs-prefill."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG210",
    slug="kda-prefill",
    title="breakable prefill graphs of Kimi delta attention, asked for by name",
    since="0.1.0",
    releases=((0, 5, 20), (0, 5, 23)),
    covers=("LOCK_BYPASSES_RULES", "BREAKABLE_WEAKREF"),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="likely",
    evidence=(
        report(
            37606, "inputs of a break are weak references: wrong output, or an illegal memory access on a KDA hybrid"
        ),
        source(
            "0.5.23",
            "model_executor/runner_backend_utils/breakable_cuda_graph/breakable_cuda_graph.py",
            "arguments of a break are captured as weak references",
        ),
    ),
    check=check,
)
