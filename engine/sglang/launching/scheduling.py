"""Chunks and pages, multiplexed prefill and decode, priorities."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_MIXED_CHUNK = ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")


def chunks(r: Resolution) -> None:
    """Mixed chunks while drafting, and chunks of whole pages."""
    args = r.args
    if args.speculative_algorithm is not None and not r.since(0, 5, 19):
        require(not args.enable_mixed_chunk, "enable_mixed_chunk is required for speculative decoding")
    elif args.speculative_algorithm is not None:
        require(
            not args.enable_mixed_chunk or args.speculative_algorithm in _MIXED_CHUNK,
            f"enable_mixed_chunk is not supported with speculative_algorithm={args.speculative_algorithm}",
        )
    if args.chunked_prefill_size > 0 and args.disaggregation_mode != "decode":
        require(
            args.chunked_prefill_size % args.page_size == 0,
            "chunked_prefill_size must be divisible by page_size",
        )


def multiplexing(r: Resolution) -> None:
    """``--enable-pdmux``: no pipeline, no chunks, no roles, no overlap."""
    args = r.args
    if not args.enable_pdmux:
        return
    require(
        args.pp_size == 1,
        "PD-Multiplexing is only supported with pipeline parallelism disabled (pp_size=1).",
    )
    require(args.chunked_prefill_size == -1, "PD-Multiplexing is not compatible with chunked prefill.")
    require(args.disaggregation_mode == "null", "PD-Multiplexing is not compatible with disaggregation mode.")
    require(args.disable_overlap_schedule, "PD-Multiplexing is not compatible with overlap schedule.")


def priorities(r: Resolution) -> None:
    """Policies that know priorities."""
    args = r.args
    if args.enable_priority_scheduling:
        require(
            args.schedule_policy in ("fcfs", "lof"),
            f"To use priority scheduling, schedule_policy must be 'fcfs' or 'lof'. '{args.schedule_policy}' is not "
            "supported.",
        )
    elif args.retraction_policy == "priority":
        raise invalid("--retraction-policy priority requires --enable-priority-scheduling")
