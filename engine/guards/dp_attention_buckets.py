"""Prefill sizes that attention data parallelism cannot split evenly.

## What it does
Looks for attention data parallelism with an attention tensor-parallel width above 1 while some prefill capture size
is no multiple of that width.

## Why it is bad
Every rank reduce-scatters the captured bucket over its attention tensor-parallel group. The capture batch is not
padded as an eager one is, so a bucket that does not divide evenly makes shards of different sizes: capture fails or
hangs, after the weights are loaded.

## What to do
Give sizes that are multiples of the width with `--cuda-graph-bs-prefill`, or launch with 0.5.22 or newer, which
rounds them.

## Exceptions
With widths of 2 and 4 the default ladder is aligned; DeepEP aligns to 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled, num_dp_ranks


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where a captured size does not divide by the attention tensor-parallel width."""
    args, prefill = examined.args, examined.prefill
    if not examined.captures_prefill or not prefill.bs or not attn_dp_enabled(args):
        return
    width = args.tp_size // max(1, num_dp_ranks(args)) // max(1, args.attn_cp_size)
    if width <= 1 or all(size % width == 0 for size in prefill.bs):
        return
    odd = [size for size in prefill.bs if size % width]
    message = (
        f"Prefill graphs are captured at sizes that {width} attention tensor-parallel ranks cannot split evenly "
        f"({', '.join(map(str, odd[:4]))}{' ...' if len(odd) > 4 else ''}): SGLang {examined.release} captures them as "
        "they are, and the collective fails or hangs."
    )
    aligned = sorted({-(-size // width) * width for size in prefill.bs})
    remedy = f"Give multiples of {width} with --cuda-graph-bs-prefill, or launch with 0.5.22 or newer."
    arguments = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "max_bs")
    suggestion = with_graph(arguments, examined.predicted.release, "prefill", "bs", *aligned)
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG401",
    slug="dp-attention-buckets",
    title="prefill sizes that are no multiple of the attention tensor-parallel width",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 21)),
    covers=("DP_ATTN_BUCKET_ALIGN",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(36262, "prefill buckets are aligned to the shard widths", pull=True),
        report(33200, "unaligned prefill buckets under attention data parallelism", pull=True),
        source(
            "0.5.21",
            "model_executor/runner/prefill_cuda_graph_runner.py, __init__",
            "capture sizes are taken as they are; 0.5.22 rounds them up",
        ),
    ),
    check=check,
)
