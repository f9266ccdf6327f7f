"""MoRI: one rank dispatches a whole chunk."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import require


def run(r: Resolution) -> None:
    """Normal mode where nothing is said, and a buffer that holds the chunk."""
    args = r.args
    if args.deepep_mode == "auto":
        r.set("deepep_mode", "normal", "for MoRI", layer="engine-default")
        r.warn("WARNING: auto set deepep_mode=`normal` for MORI EP")
    if args.chunked_prefill_size > 0 and args.disaggregation_mode != "decode":
        require(
            args.chunked_prefill_size <= environ.read(r, "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
            "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK (default 4096) must be "
            + (
                ">= the per-rank MoRI dispatch tokens (chunked_prefill_size by default)"
                if r.since(0, 5, 15)
                else "larger or equal to chunked_prefill_size"
            ),
        )
