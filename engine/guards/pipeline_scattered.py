"""Decode graphs of pipelines whose stages hand on scattered rows.

## What it does
Looks for `--pp-size` above 1 with decode graphs on a mixture-of-experts model while the all-to-all backend (or
`--moe-dense-tp-size`) leaves every rank of an attention tensor-parallel group its own rows, and that group is wider
than one.

## Why it is bad
A stage hands on as many rows as one rank holds, and the decode runner allocates and slices the tensors between stages
for all of them. The first layer of the second stage meets a residual of another length: capture stops with a shape
error, after the weights are loaded.

## What to do
Switch decode graphs off, give every rank its own attention group (`--enable-dp-attention` with as many groups as
ranks), or leave the pipeline out.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled, num_dp_ranks


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where stages hand on fewer rows than the graph was built for."""
    args = examined.args
    if args.pp_size <= 1 or examined.decode.backend == "disabled" or args.disable_attn_tp_gather:
        return
    if args.moe_a2a_backend == "none" and args.moe_dense_tp_size is None:
        return
    groups = num_dp_ranks(args) if attn_dp_enabled(args) else 1
    width = args.tp_size // max(1, groups)
    if width <= 1 or not examined.facts.num_experts:
        return
    what = f"--moe-a2a-backend {args.moe_a2a_backend}" if args.moe_a2a_backend != "none" else "--moe-dense-tp-size"
    message = (
        f"A pipeline of {args.pp_size} with {what} and {width} attention tensor-parallel ranks: stages hand on one "
        f"part in {width} of the rows that decode graphs of SGLang {examined.release} are built for, and capture stops "
        "with a shape error."
    )
    remedy = "Write --cuda-graph-backend-decode disabled, or leave the pipeline out."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "decode", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG406",
    slug="pipeline-scattered-decode",
    title="decode graphs of a pipeline with a scattering MoE all-to-all backend",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("PP_GRAPH",),
    phase="decode",
    backend=None,
    severity="error",
    confidence="likely",
    evidence=(
        report(20230, "capture stops: 8 rows against 32, pipeline with DeepEP"),
        report(20416, "tensors between stages ignore the scatter factor", pull=True),
        report(31012, "the same for models with local dense layers", pull=True),
        source(
            "0.5.23",
            "model_executor/runner/decode_cuda_graph_runner.py, capture_prepare",
            "tensors between stages are sliced to all tokens",
        ),
        source("0.5.23", "utils/common.py, require_attn_tp_gather", "when the input of attention is scattered"),
    ),
    check=check,
)
