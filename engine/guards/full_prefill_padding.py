"""Full prefill graphs of releases that do not tell the graph which tokens are padding.

## What it does
Looks for full prefill graphs on SGLang 0.5.15 to 0.5.18.

## Why it is bad
A full prefill graph is replayed at the next captured size, with padding behind the live tokens. Until 0.5.18 the number
of live tokens is registered with the graph only where expert parallelism needs it, so a model that masks padded rows
works on the padding too: wrong tokens, with HTTP 200. The engine itself calls the backend experimental.

## What to do
Use the breakable prefill graph on these releases, or launch with 0.5.19 or newer.

## Exceptions
From 0.5.19 on the live boundary is registered for every full prefill graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule
from engine.guards.words import with_graph
from engine.verdict import Evidence


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where a full prefill graph would be captured."""
    if examined.prefill.backend != "full" or not examined.captures_prefill:
        return
    message = (
        f"SGLang {examined.release} replays full prefill graphs with padding, without registering how many tokens are "
        "live: outputs can be wrong. The engine calls full prefill experimental here."
    )
    remedy = "Write --cuda-graph-backend-prefill breakable, or launch with 0.5.19 or newer."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "breakable")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG202",
    slug="full-prefill-padding",
    title="full prefill graphs before the live tokens were registered",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 18)),
    covers=("FULL_PREFILL_EXPERIMENTAL",),
    phase="prefill",
    backend="full",
    severity="warning",
    confidence="likely",
    evidence=(
        Evidence(
            kind="report",
            reference="https://github.com/sgl-project/sglang/pull/35588",
            says="the number of live tokens is registered for full prefill graphs",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.18: srt/model_executor/runner/prefill_cuda_graph_runner.py",
            says="num_token_non_padded is enabled by expert parallelism alone; 0.5.19 adds the full backend",
        ),
    ),
    check=check,
)
