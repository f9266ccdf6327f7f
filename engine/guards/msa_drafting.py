"""Drafting in graphs on MiniMax-M3 with the MSA kernels.

## What it does
Looks for MiniMax-M3 on a GPU with the MSA kernels (compute capability 10.x) with speculative decoding and a decode
graph.

## Why it is bad
The attention backend raises `NotImplementedError` when it is built: verification batches would dereference metadata
that is not there. The weights are loaded by then.

## What to do
Set `SGLANG_DISABLE_MSA=1` (the Triton path verifies in graphs), or leave drafting or decode graphs out.

## Exceptions
The kernels run with pages of 128 tokens and a bf16 cache only; other launches are on the Triton path. NVFP4 caches
have a backend of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.platform import platform_of

_PAGE = 128


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the MSA kernels meet drafting in a graph."""
    args = examined.args
    if args.speculative_algorithm is None or examined.decode.backend == "disabled":
        return
    if not examined.resolution.model.is_minimax_sparse or not platform_of(examined.gpu).is_sm100:
        return
    if examined.launch.environment.get("SGLANG_DISABLE_MSA", "").lower() in ("1", "true"):
        return
    if args.page_size != _PAGE or str(args.kv_cache_dtype) not in ("auto", "bfloat16", "bf16"):
        return
    message = (
        f"MiniMax-M3's MSA kernels do not support {args.speculative_algorithm} drafting under decode graphs: SGLang "
        f"{examined.release} raises NotImplementedError when it builds the attention backend."
    )
    remedy = "Set SGLANG_DISABLE_MSA=1, or write --cuda-graph-backend-decode disabled."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "decode", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG505",
    slug="msa-drafting",
    title="speculative decoding in graphs on the MSA kernels",
    since="0.1.0",
    releases=((0, 5, 16), (0, 5, 23)),
    covers=("MSA",),
    phase="decode",
    backend=None,
    severity="error",
    confidence="likely",
    evidence=(
        report(27, "drafting on MiniMax-M3 stops at start-up", repository="local-inference-lab/rtx6kpro"),
        source(
            "0.5.23",
            "layers/attention/minimax_sparse_backend.py, __init__",
            "MSA, drafting and a decode graph raise NotImplementedError",
        ),
    ),
    check=check,
)
