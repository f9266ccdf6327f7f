"""MegaMoE prefill graphs of models with dense layers under attention data parallelism.

## What it does
Looks for MegaMoE under attention data parallelism with a prefill graph on a model whose first layers are dense
(`first_k_dense_replace` above 0), on 0.5.19.

## Why it is bad
0.5.19 lets MegaMoE ranks replay prefill graphs of different sizes. A dense layer gathers over the ranks, and its
gather was captured for equal sizes: ranks read each other's rows wrongly, or wait for ever.

## What to do
Switch prefill graphs off, or launch with 0.5.20 or newer, which notices the captured gather.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled, num_dp_ranks


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where dense layers gather inside a MegaMoE prefill graph."""
    args = examined.args
    if args.moe_a2a_backend != "megamoe" or not examined.captures_prefill:
        return
    if not attn_dp_enabled(args) or num_dp_ranks(args) <= 1:
        return
    dense = examined.resolution.model.text.get("first_k_dense_replace")
    if not isinstance(dense, int) or dense <= 0:
        return
    message = (
        f"MegaMoE under attention data parallelism with {examined.prefill.backend} prefill graphs on a model with "
        f"{dense} dense layers: SGLang {examined.release} replays graphs of different sizes on different ranks, and "
        "the dense layers' gather was captured for equal ones."
    )
    remedy = "Write --cuda-graph-backend-prefill disabled, or launch with 0.5.20 or newer."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG404",
    slug="mega-moe-dense-layers",
    title="MegaMoE prefill graphs of models with dense layers under attention data parallelism",
    since="0.1.0",
    releases=((0, 5, 19), (0, 5, 19)),
    covers=("DP_ATTN_OTHER",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="likely",
    evidence=(
        report(37933, "MegaMoE with dense first layers under attention data parallelism", pull=True),
        report(33871, "per-rank prefill sizes for MegaMoE", pull=True),
        source(
            "0.5.19",
            "model_executor/forward_batch_info.py, prefill_graph_tolerates_sum_len",
            "MegaMoE alone decides; 0.5.20 asks whether a gather was captured",
        ),
    ),
    check=check,
)
