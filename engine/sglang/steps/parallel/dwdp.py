"""Distributed-weight data parallelism: every rank fetches the experts that it lacks; no graph holds such a step."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import require


def run(r: Resolution) -> None:
    """Check what it excludes, then force the layout that it needs, without CUDA graphs."""
    args = r.args
    size = args.dwdp_size
    if size <= 1:
        return
    require(size == args.tp_size, f"dwdp_size ({size}) must equal tp_size ({args.tp_size})")
    require(args.disaggregation_mode in ("null", "prefill"), "DWDP requires --disaggregation-mode null or prefill")
    require(not args.enable_eplb, "EPLB dynamic migration conflicts with static DWDP partitioning")
    require(
        args.speculative_algorithm is None,
        "DWDP does not support speculative decoding (MTP/draft workers)",
    )
    require(args.pp_size == 1, "DWDP requires pp_size == 1")
    require(
        not args.enable_two_batch_overlap,
        "DWDP's prefetch event protocol does not support two-batch overlap",
    )
    if args.disaggregation_mode == "null":
        r.warn(
            "WARNING: DWDP with --disaggregation-mode null: decode steps re-fetch all remote expert weights every "
            "step, "
            "which is slow. DWDP is recommended only with --disaggregation-mode prefill."
        )
    forced = {
        "attn_dp_size": size,
        "dp_size": 1,
        "enable_dp_attention_local_control_broadcast": True,
        "enable_dp_lm_head": True,
        "moe_dense_tp_size": 1,
        "ep_size": size,
        "moe_dp_size": 1,
        "moe_a2a_backend": "none",
        "disable_cuda_graph": True,
    }
    if not r.since(0, 5, 22):
        forced["enable_dp_attention"] = True
    for name, value in forced.items():
        r.set(name, value, f"--dwdp-size {size} needs this")
    environ.put(r, "SGLANG_SCHEDULER_SKIP_ALL_GATHER", True)
