"""Decode graphs smaller than the batches that the operator allows.

## What it does
Looks for a `--max-running-requests` (for each attention data-parallel group) above the largest decode graph, and for
`--disable-cuda-graph-padding`.

## Why it is bad
A batch larger than the largest graph runs eagerly, which makes it slower, which makes it stay large: throughput falls
and does not recover. Nothing in the log says so. Without padding a batch between two sizes runs eagerly
too, or every size is captured on its own: hundreds of graphs, with their start-up time and memory.

## What to do
Raise `--cuda-graph-max-bs-decode` to the number of requests, or lower `--max-running-requests`.

## Exceptions
Only a limit that the operator wrote counts: the engine's own estimate is far above what a server usually holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph, without


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where an allowed batch is larger than every graph, or falls between two that are not padded."""
    decode, args = examined.decode, examined.args
    largest = decode.max_bs
    if decode.backend == "disabled" or largest is None:
        return
    given = args.max_running_requests
    limit = None if given is None else max(1, given // _groups(examined))
    if limit is not None and limit > largest and "max_running_requests" in examined.resolution.given:
        message = (
            f"Up to {limit} requests run at once, and the largest decode graph holds {largest}: SGLang "
            f"{examined.release} decodes larger batches eagerly."
        )
        remedy = f"Write --cuda-graph-max-bs-decode {limit}, or --max-running-requests {largest * _groups(examined)}."
        arguments = with_graph(examined.launch.arguments, examined.predicted.release, "decode", "bs")
        suggestion = with_graph(arguments, examined.predicted.release, "decode", "max_bs", limit)
        yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))
    if args.disable_cuda_graph_padding:
        sizes = len(set(decode.bs or ()))
        message = f"--disable-cuda-graph-padding with {sizes} decode sizes up to {largest}: " + (
            "a batch between two sizes runs eagerly." if sizes < largest else "every size is captured on its own."
        )
        suggestion = without(examined.launch.arguments, examined.predicted.release, "disable_cuda_graph_padding")
        remedy = "Leave --disable-cuda-graph-padding out."
        yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


def _groups(examined: Examined) -> int:
    """Groups of attention data parallelism, each with its own share of the requests."""
    args = examined.args
    if examined.since(0, 5, 22) or not args.enable_dp_attention:
        return max(1, int(args.attn_dp_size or 1))
    return max(1, int(args.dp_size))


RULE = Rule(
    id="GG301",
    slug="decode-coverage",
    title="decode graphs that do not cover --max-running-requests",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("DECODE_COVERAGE",),
    phase="decode",
    backend=None,
    severity="warning",
    confidence="certain",
    evidence=(
        report(33483, "warn when the graph ceiling is far below max_running_requests"),
        report(21005, "decode batches beyond the captured sizes", pull=True),
        source(
            "0.5.23",
            "model_executor/runner/decode_cuda_graph_runner.py, can_run_graph",
            "a batch above the largest captured size is not replayed",
        ),
    ),
    check=check,
)
