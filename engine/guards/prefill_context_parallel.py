"""Prefill graphs under context parallelism.

## What it does
Looks for `--dcp-size` above 1, and for prefill context parallelism (`--attn-cp-size`) outside the combinations that
the engine supports, with a breakable, full or piecewise prefill graph that was asked for by name. Where nobody asked,
the engine switches its default off, and a note says so.

## Why it is bad
Naming the backend skips the engine's own rules. The batch that capture runs on carries no metadata of decode context
parallelism, and MLA's gather dereferences it; under prefill context parallelism the gathered sizes of replay differ
from those of capture. The server stops in capture, after the weights are loaded.

## What to do
Leave the prefill backend to the engine, or switch prefill graphs off by name. Decode graphs are not affected.

## Exceptions
Zigzag on `trtllm_mha` is supported, and from 0.5.22 and 0.5.23 on the combinations that the engine lists
(`layers/cp/bcg`). Together with pipeline parallelism the graph is dropped while loading; see [GG205](GG205-pipeline-
prefill-graph.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.steps.graph.prefill_cp import supports_breakable_under_cp


def check(examined: Examined) -> Iterator[Hit]:
    """An error for a graph asked for by name, a note where the engine switched its default off."""
    args = examined.args
    if args.dcp_size <= 1 and args.attn_cp_size <= 1:
        return
    backend = examined.prefill.backend
    unsupported = args.attn_cp_size > 1 and not supports_breakable_under_cp(examined.resolution)
    if args.dcp_size <= 1 and (not unsupported or args.pp_size > 1):
        return
    what = f"--dcp-size {args.dcp_size}" if args.dcp_size > 1 else f"--attn-cp-size {args.attn_cp_size}"
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "context parallel" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off under {what}: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if not examined.named("prefill") or not examined.captures_prefill:
        return
    message = (
        f"Prefill graphs {backend} are asked for by name under {what}, which skips the engine's own rule against them: "
        f"SGLang {examined.release} stops in capture, because the capture batch does not carry this parallelism."
    )
    remedy = "Write --cuda-graph-backend-prefill disabled; decode graphs are not affected."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG204",
    slug="prefill-context-parallel",
    title="prefill graphs under context parallelism that capture does not support",
    since="0.1.0",
    releases=((0, 5, 16), (0, 5, 23)),
    covers=("DCP_CP_PREFILL_GRAPH", "LOCK_BYPASSES_RULES"),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(38943, "an explicit breakable prefill graph crashes in capture with --dcp-size above 1", pull=True),
        report(31532, "prefill graphs and context parallelism", pull=True),
        source(
            "0.5.23",
            "models/deepseek_common/attention_forward_methods/forward_mla.py",
            "the extend path reads attn_dcp_metadata, which the capture batch does not carry",
        ),
        source(
            "0.5.23",
            "layers/cp/bcg/__init__.py, supports_prefill_cp_bcg",
            "the combinations of strategy and attention backend that capture supports",
        ),
    ),
    check=check,
)
