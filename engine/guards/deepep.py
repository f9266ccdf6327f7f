"""DeepEP modes that graphs do not survive.

## What it does
Looks for DeepEP in low-latency or automatic mode with pipeline parallelism while decode graphs are captured, and for
automatic mode with attention data parallelism. Where normal dispatch switched graphs off, a note says so.

## Why it is bad
In a pipeline DeepEP's buffer is created lazily, inside decode capture, where it may not allocate. In automatic mode
under attention data parallelism a rank that prefills and one that decodes can wait for each other in different
kernels. Normal dispatch reads counts on the host, which no graph can hold.

## What to do
For a pipeline switch decode graphs off, or leave one of the two out. Under data parallelism separate prefill and
decode servers, each with its own mode (`normal`, `low_latency`).

## Exceptions
Servers of one role take one mode only.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.sglang.derived import attn_dp_enabled


def check(examined: Examined) -> Iterator[Hit]:
    """Warnings for pipelines and for automatic mode, a note where normal dispatch switched graphs off."""
    args = examined.args
    if args.moe_a2a_backend not in ("deepep", "deepep_v2"):
        return
    for phase, switched in examined.switched_off.items():
        if "DeepEP" in switched.why:
            message = f"SGLang {examined.release} switches {phase} graphs off: {switched.why}."
            remedy = "Nothing to do, or choose --deepep-mode low_latency or auto where decoding matters."
            yield Hit(finding=RULE.finding("note", message, remedy, phase=phase))
    mode = args.deepep_mode
    if args.moe_a2a_backend != "deepep" or mode == "normal" or examined.decode.backend == "disabled":
        return
    if args.pp_size > 1:
        message = (
            f"DeepEP ({mode}) in a pipeline of {args.pp_size}: SGLang {examined.release} creates DeepEP's buffer "
            "inside decode capture, which a report shows failing."
        )
        yield Hit(
            finding=RULE.finding("warning", message, "Write --cuda-graph-backend-decode disabled.", phase="decode")
        )
    elif mode == "auto" and attn_dp_enabled(args) and args.disaggregation_mode == "null":
        message = (
            f"DeepEP in automatic mode under attention data parallelism: in SGLang {examined.release} a rank that "
            "prefills and one that decodes can wait for each other, and reports show hangs."
        )
        remedy = "Serve prefill and decode apart (--disaggregation-mode), or watch the first mixed load."
        yield Hit(finding=RULE.finding("warning", message, remedy, phase="decode"))


RULE = Rule(
    id="GG403",
    slug="deepep-graphs",
    title="DeepEP modes with graphs: normal dispatch, pipelines, data parallelism",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("DEEPEP_NORMAL",),
    phase=None,
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(29942, "with a pipeline the DeepEP buffer is created inside decode capture"),
        report(6218, "automatic mode under data parallelism hangs"),
        report(5014, "normal dispatch and graphs", pull=True),
        source(
            "0.5.23", "layers/moe/token_dispatcher/deepep.py, get_deepep_buffer", "the buffer is created on first use"
        ),
    ),
    check=check,
)
