"""PPLX: low latency only, over at least two attention groups, on DeepGEMM."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require


def run(r: Resolution) -> None:
    """Mode, groups, runner, and a buffer that holds chunk and decode graph."""
    args = r.args
    if args.deepep_mode == "normal":
        raise invalid(
            "moe_a2a_backend='pplx' only supports low-latency mode; set --deepep-mode to 'low_latency' or 'auto'."
        )
    if args.deepep_mode == "auto":
        r.set("deepep_mode", "low_latency", "for PPLX", layer="engine-default")
        r.warn("WARNING: auto set deepep_mode=`low_latency` for PPLX EP")
    require(
        args.attn_dp_size >= 2,
        "moe_a2a_backend='pplx' requires attention DP with at least 2 groups (--attn-dp-size >= 2)."
        if r.since(0, 5, 22)
        else "moe_a2a_backend='pplx' requires --enable-dp-attention with at least 2 DP groups (--dp-size >= 2).",
    )
    require(
        args.moe_runner_backend in ("deep_gemm", "auto"),
        "moe_a2a_backend='pplx' is only supported with --moe-runner-backend deep_gemm (or auto).",
    )
    if args.moe_runner_backend == "auto":
        r.set("moe_runner_backend", "deep_gemm", "for PPLX", layer="engine-default")
        r.warn("WARNING: auto set moe_runner_backend=`deep_gemm` for PPLX EP")
    if args.chunked_prefill_size > 0 and args.disaggregation_mode != "decode":
        needed = args.chunked_prefill_size
        if args.cuda_graph_max_bs_decode is not None:
            needed = max(needed, args.cuda_graph_max_bs_decode)
        require(
            needed <= environ.read(r, "SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
            "SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK (default 128) must be >= the per-rank pplx dispatch tokens "
            "(chunked_prefill_size, or the decode cuda-graph batch size)",
        )
