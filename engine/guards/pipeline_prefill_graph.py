"""Prefill graphs that pipeline parallelism takes away.

## What it does
Looks for `--pp-size` above 1 where the engine switched its default breakable prefill graph off, and says so in a
note.

## Why it is bad
From 0.5.19 on prefill graphs are opt-in with pipeline parallelism, so a launch that had them on one node loses them
on two.

## What to do
Ask for the graph by name where small prefill batches matter, and measure.

## Exceptions
What is dropped while loading, such as a pipeline with prefill context parallelism, is [GG103](GG103-dropped-while-
loading.md)'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source


def check(examined: Examined) -> Iterator[Hit]:
    """A note where the default is off."""
    if examined.args.pp_size <= 1:
        return
    switched = examined.switched_off.get("prefill")
    if switched is not None and "pipeline parallelism" in switched.why:
        message = f"SGLang {examined.release} captures no prefill graph by default: {switched.why}."
        remedy = "Write --cuda-graph-backend-prefill breakable where small prefill batches matter, and measure."
        yield Hit(finding=RULE.finding("note", message, remedy))


RULE = Rule(
    id="GG205",
    slug="pipeline-prefill-graph",
    title="the default prefill graph is off with pipeline parallelism",
    since="0.1.0",
    releases=((0, 5, 19), (0, 5, 23)),
    covers=("PP_GRAPH",),
    phase="prefill",
    backend="breakable",
    severity="note",
    confidence="certain",
    evidence=(
        report(35451, "prefill graphs with pipeline parallelism become opt-in", pull=True),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, apply_cuda_graph_compatibility",
            "the default breakable graph is off with pipeline parallelism",
        ),
    ),
    check=check,
)
