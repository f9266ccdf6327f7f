"""CUTLASS MLA with an FP8 cache in decode graphs.

## What it does
Looks for decode attention on `cutlass_mla` with an FP8 KV cache and a decode graph.

## Why it is bad
The kernel has no FP8 cache. The mismatch shows as an error inside decode capture, after the weights are loaded.

## What to do
Leave `--kv-cache-dtype` at auto, or use another MLA backend (`trtllm_mla` on Blackwell).

## Exceptions
From 0.5.20 on the backend is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import without


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the backend meets an FP8 cache."""
    args = examined.args
    if examined.attention_backends[1] != "cutlass_mla" or examined.decode.backend == "disabled":
        return
    if not str(args.kv_cache_dtype).startswith("fp8"):
        return
    message = (
        f"Decode attention on cutlass_mla with --kv-cache-dtype {args.kv_cache_dtype}: SGLang {examined.release}'s "
        "backend has no FP8 cache, and decode capture fails."
    )
    remedy = "Leave --kv-cache-dtype out, or write --decode-attention-backend trtllm_mla."
    suggestion = without(examined.launch.arguments, examined.predicted.release, "kv_cache_dtype")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG701",
    slug="cutlass-mla-fp8",
    title="cutlass_mla with an FP8 KV cache in decode graphs",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 19)),
    covers=("QUANT_AND_KERNEL",),
    phase="decode",
    backend=None,
    severity="error",
    confidence="likely",
    evidence=(
        report(12197, "cutlass_mla with an FP8 cache fails in capture"),
        source("0.5.19", "layers/attention/cutlass_mla_backend.py", "the backend has no branch for an FP8 cache"),
    ),
    check=check,
)
