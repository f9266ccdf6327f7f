"""Breakable prefill graphs over an all-to-all backend that nobody validated.

## What it does
Looks for a MoE all-to-all backend other than none, DeepEP, MegaMoE and FlashInfer with a breakable prefill graph that
was asked for by name. Where the engine switched its default off, a note says so.

## Why it is bad
The engine's rule against it is skipped when the backend is named. Whether the dispatch may be replayed was not
examined for these backends: a count read on the host makes a hang or a wrong result.

## What to do
Leave the prefill backend to the engine, or use an all-to-all backend that is validated.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph

_VALIDATED = ("none", "deepep", "megamoe", "flashinfer")


def check(examined: Examined) -> Iterator[Hit]:
    """A warning for a graph asked for by name, a note where the engine switched its default off."""
    a2a = examined.args.moe_a2a_backend
    if a2a in _VALIDATED:
        return
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "a2a backend" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why} ({a2a})."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if backend != "breakable" or not examined.named("prefill"):
        return
    message = (
        f"A breakable prefill graph is asked for by name over --moe-a2a-backend {a2a}, which SGLang {examined.release} "
        "has not validated for capture; naming the backend skips its rule."
    )
    remedy = "Leave the prefill backend to the engine, or use a validated all-to-all backend."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG209",
    slug="unvalidated-a2a-prefill",
    title="breakable prefill graphs over an unvalidated MoE all-to-all backend",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 23)),
    covers=("LOCK_BYPASSES_RULES",),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="likely",
    evidence=(
        report(38354, "an explicit backend skips every rule, the hard ones too", pull=True),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, disable_breakable_cudagraph_if_incompatible",
            "the all-to-all backends that are validated for breakable capture",
        ),
    ),
    check=check,
)
