"""Decode graphs on compute capability 12.x that reports show failing.

## What it does
Looks for a GPU of compute capability 12.x with a decode graph and either Qwen's sparse attention (`qsa`) or NEXTN
drafting.

## Why it is bad
Reports show illegal memory accesses and wrong outputs from captured decoding on these GPUs, while the same launch
runs eagerly.

## What to do
Switch decode graphs off for a first run, and compare; or leave drafting out.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.platform import platform_of


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for sparse attention or NEXTN on such a GPU."""
    if not platform_of(examined.gpu).is_sm120 or examined.decode.backend == "disabled":
        return
    sparse = "qsa" in examined.attention_backends
    if not sparse and "NEXTN" not in _asked(examined):
        return
    what = "Qwen's sparse attention" if sparse else "NEXTN drafting"
    message = (
        f"Decode graphs with {what} on {examined.gpu.name} (compute capability 12.x): reports of SGLang "
        f"{examined.release} and its neighbours show illegal memory accesses or wrong outputs."
    )
    remedy = "Write --cuda-graph-backend-decode disabled for a first run, and compare."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "decode", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


def _asked(examined: Examined) -> str:
    """The drafting algorithm as the operator wrote it: the engine resolves NEXTN to EAGLE."""
    if examined.args.speculative_algorithm is None:
        return ""
    written = [word.upper() for word in examined.launch.arguments]
    return "NEXTN" if any(word.endswith("NEXTN") for word in written) else ""


RULE = Rule(
    id="GG506",
    slug="sm12x-decode-graph",
    title="sparse attention or drafting in decode graphs on compute capability 12.x",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 23)),
    covers=("SM12X",),
    phase="decode",
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(37111, "decode graphs on compute capability 12.x"),
        report(37052, "NEXTN under full decode graphs: invalid probabilities on both ranks, compute capability 12.1"),
        source(
            "0.5.23", "layers/attention/qwen_sparse_attn_backend.py", "the sparse backend captures its own metadata"
        ),
    ),
    check=check,
)
