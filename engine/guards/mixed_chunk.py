"""Mixed chunks with a prefill graph that cannot carry them.

## What it does
Looks for `--enable-mixed-chunk` with a prefill graph other than the breakable one on 0.5.19 to 0.5.21; from 0.5.22 on
the full one may carry mixed chunks too.

## Why it is bad
The prefill runner asserts the backend when it is built, after the weights have been loaded: the server stops with an
`AssertionError`.

## What to do
Use the breakable prefill graph, or leave `--enable-mixed-chunk` out.

## Exceptions
With prefill graphs disabled no runner is built, and mixed chunks run eagerly.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule
from engine.guards.words import with_graph
from engine.verdict import Evidence


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where mixed chunks meet a prefill graph whose runner refuses them."""
    backend = examined.prefill.backend
    if not examined.args.enable_mixed_chunk or backend == "breakable" or not examined.captures_prefill:
        return
    if backend == "full" and examined.since(0, 5, 22):
        return
    message = (
        f"--enable-mixed-chunk with prefill graphs {backend}: SGLang {examined.release} asserts the breakable prefill "
        "graph for mixed chunks when the runner is built, after the weights are loaded."
    )
    remedy = "Write --cuda-graph-backend-prefill breakable, or leave --enable-mixed-chunk out."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "breakable")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG203",
    slug="mixed-chunk-prefill-graph",
    title="mixed chunks with a prefill graph that cannot carry them",
    since="0.1.0",
    releases=((0, 5, 19), (0, 5, 23)),
    covers=("TC_PIECEWISE_LEGACY",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        Evidence(
            kind="report",
            reference="https://github.com/sgl-project/sglang/pull/20441",
            says="mixed chunks do not fit a prefill graph in pieces",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.20: srt/model_executor/runner/prefill_cuda_graph_runner.py, __init__",
            says="mixed chunks assert the breakable backend; 0.5.22 lets the full one pass too",
        ),
    ),
    check=check,
)
