"""Prefill graphs under two-batch overlap.

## What it does
Looks for `--enable-two-batch-overlap` with a prefill graph that was asked for by name. Where the engine switched its
default off, a note says so.

## Why it is bad
The engine does not support capture of overlapped batches: the capture batch is never split in two, so replay runs
without the overlap that was asked for, or fails. Naming the backend skips the engine's rule.

## What to do
Choose one: leave the prefill backend to the engine and keep the overlap, or leave the overlap out.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph


def check(examined: Examined) -> Iterator[Hit]:
    """A warning for a graph asked for by name, a note where the engine switched its default off."""
    if not examined.args.enable_two_batch_overlap:
        return
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "two-batch overlap" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if not examined.named("prefill"):
        return
    message = (
        f"A {backend} prefill graph is asked for by name under --enable-two-batch-overlap, which SGLang "
        f"{examined.release} does not support in capture: the overlap is lost in replay, or capture fails."
    )
    remedy = "Leave the prefill backend to the engine, or leave --enable-two-batch-overlap out."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG208",
    slug="two-batch-overlap",
    title="prefill graphs under two-batch overlap",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 23)),
    covers=("TBO", "LOCK_BYPASSES_RULES"),
    phase="prefill",
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(7042, "two-batch overlap and graph capture"),
        report(7511, "two-batch overlap and graph capture"),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, disable_breakable_cudagraph_if_incompatible",
            "capture under two-batch overlap is unsupported",
        ),
    ),
    check=check,
)
