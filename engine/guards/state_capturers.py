"""Returning routed experts under attention data parallelism with prefill graphs.

## What it does
Looks for `--enable-return-routed-experts` or `--enable-return-indexer-topk` with attention data parallelism, no
scattering all-to-all backend, and a prefill graph.

## Why it is bad
After a captured prefill the capturer takes the batch size of the decode graph to find its rank's rows. Before the
first decode there is none (`TypeError`: int times None); afterwards it is another batch's, and the rows returned are
wrong.

## What to do
Switch prefill graphs off for such a server.

## Exceptions
With an all-to-all backend that scatters (DeepEP and the like) the rows start at zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled, num_dp_ranks


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where capturers, attention data parallelism and a prefill graph meet."""
    args = examined.args
    if not (args.enable_return_routed_experts or args.enable_return_indexer_topk):
        return
    if not examined.captures_prefill or args.moe_a2a_backend != "none":
        return
    if not attn_dp_enabled(args) or num_dp_ranks(args) <= 1:
        return
    option = "--enable-return-routed-experts" if args.enable_return_routed_experts else "--enable-return-indexer-topk"
    message = (
        f"{option} under attention data parallelism with {examined.prefill.backend} prefill graphs: SGLang "
        f"{examined.release} takes the decode graph's batch for the rows of a captured prefill, and stops with a "
        "TypeError on the first request."
    )
    remedy = "Write --cuda-graph-backend-prefill disabled."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG402",
    slug="dp-attention-capturers",
    title="returned experts or top-k under attention data parallelism with prefill graphs",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 23)),
    covers=("DP_ATTN_OTHER",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(30712, "state capturers crash where the captured extent is not known"),
        report(31116, "the same path, and a second fault in capture"),
        source(
            "0.5.23", "layers/dp_attention.py, get_dp_local_slice_cpu", "the rank is multiplied by the captured batch"
        ),
        source("0.5.23", "model_executor/model_runner.py", "the captured batch is the decode runner's"),
    ),
    check=check,
)
