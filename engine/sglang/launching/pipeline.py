"""What runs in pipeline stages, and what does not."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import require


def run(r: Resolution) -> None:
    """No overlap schedule; drafting by EAGLE or DSPARK, on prefill servers."""
    args = r.args
    if args.pp_size <= 1:
        return
    if r.since(0, 5, 21):
        require(args.disable_overlap_schedule, "Pipeline parallelism is not compatible with overlap schedule")
        if args.speculative_algorithm is not None:
            _drafting(r)
    else:
        require(
            args.disable_overlap_schedule and args.speculative_algorithm is None,
            "Pipeline parallelism is not compatible with overlap schedule, speculative decoding",
        )
    require(
        args.min_free_slots_delay is None or not r.since(0, 5, 18),
        "--min-free-slots-delay is not supported with pipeline parallelism: allocatable slots per microbatch are "
        "bounded "
        "by pp-max-micro-batch-size, so the threshold may never be reached",
    )


def _drafting(r: Resolution) -> None:
    args = r.args
    every_stage = environ.read(r, "SGLANG_ENABLE_PP_SPEC")
    prefill = args.disaggregation_mode == "prefill"
    if args.speculative_algorithm == "DSPARK":
        require(prefill, "Pipeline parallel DSPARK requires disaggregation-mode=prefill")
        require(not every_stage, "SGLANG_ENABLE_PP_SPEC does not support DSPARK PD prefill")
        return
    require(
        args.speculative_algorithm.upper() == "EAGLE" and not args.enable_multi_layer_eagle,
        "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
    )
    if not every_stage:
        require(
            prefill,
            "PP + speculative decoding (MTP) is only supported on prefill nodes (disaggregation-mode=prefill)",
        )
        return
    excluded = "SGLANG_ENABLE_PP_SPEC is not compatible with"
    require(args.disaggregation_mode == "null", f"{excluded} --disaggregation-mode")
    require(not args.speculative_adaptive, f"{excluded} --speculative-adaptive")
    name = "attention DP (--attn-dp-size)" if r.since(0, 5, 22) else "--enable-dp-attention"
    require(not attn_dp_enabled(args), f"{excluded} {name}")
