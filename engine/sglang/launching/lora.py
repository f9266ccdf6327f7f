"""LoRA adapters: what they are served with, and which runners carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_DRAFTING = ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")


def run(r: Resolution) -> None:
    """Adapters, their number and rank; then the expert runners."""
    args = r.args
    require(args.max_loras_per_batch > 0, "max_loras_per_batch must be positive")
    on = args.enable_lora if args.enable_lora is not None else bool(args.lora_paths)
    if on:
        _enabled(r)
    _expert_runner(r, on=bool(on))


def _enabled(r: Resolution) -> None:
    args = r.args
    runner = args.moe_runner_backend
    if args.lora_backend == "triton_v2" and not runner.startswith("lora"):
        _second_backend(r, "--lora-backend triton_v2")
    most, loaded = args.max_loras_per_batch, args.max_loaded_loras
    if args.enable_lora_overlap_loading:
        require(
            loaded is not None and loaded <= most * 2,
            "Enabling LoRA overlap loading requires pinning LoRA adapter weights in CPU memory, so --max-loaded-loras "
            f"must be less than or equal to double --max-loras-per-batch: {most * 2}",
        )
    _drafting(r)
    paths = args.lora_paths
    if paths is not None and not isinstance(paths, (Sequence, Mapping)):
        raise invalid(f"Invalid type for --lora-paths: {type(paths)}. Expected a list or a dictionary.")
    modules = set(args.lora_target_modules or ())
    if "all" in modules:
        require(
            len(modules) == 1,
            "If 'all' is specified in --lora-target-modules, it should be the only module specified.",
        )
    require(
        paths or (args.max_lora_rank and modules),
        "When no initial --lora-paths is provided, you need to specify both --max-lora-rank and --lora-target-modules "
        "for LoRA initialization.",
    )
    if loaded is not None:
        require(
            loaded >= most,
            "max_loaded_loras should be greater than or equal to max_loras_per_batch. "
            f"max_loaded_loras={loaded}, max_loras_per_batch={most}",
        )
        require(
            len(paths or ()) <= loaded,
            "The number of LoRA paths should not exceed max_loaded_loras. "
            f"max_loaded_loras={loaded}, lora_paths={len(paths or ())}",
        )
    chunk = args.max_lora_chunk_size
    if chunk is not None:
        require(
            16 <= chunk <= 128 and chunk & (chunk - 1) == 0,
            "--max-lora-chunk-size must be a power of 2 between 16 and 128.",
        )
    require(args.lora_drain_wait_threshold >= 0.0, "--lora-drain-wait-threshold must be non-negative.")


def _second_backend(r: Resolution, option: str) -> None:
    args = r.args
    for excluded, mode in (
        (args.attn_dp_size > 1, "DP-attention with --attn-dp-size > 1"),
        (args.enable_pdmux, "PD-multiplexing"),
        (args.enable_two_batch_overlap, "two-batch overlap"),
        (environ.read(r, "SGLANG_EXPERIMENTAL_LORA_OPTI"), "SGLANG_EXPERIMENTAL_LORA_OPTI"),
    ):
        if excluded:
            raise invalid(f"{option} does not yet support {mode}")


def _drafting(r: Resolution) -> None:
    args = r.args
    algorithm = args.speculative_algorithm
    if algorithm in ("NGRAM", None):
        return
    if not r.since(0, 5, 19):
        raise invalid("Currently LoRA is only compatible with NGRAM speculative decoding.")
    if algorithm not in _DRAFTING:
        promoted = (
            " (NEXTN/EAGLE with a Gemma4 assistant draft is automatically promoted to FROZEN_KV_MTP, which does not "
            "support LoRA)"
            if algorithm == "FROZEN_KV_MTP"
            else ""
        )
        raise invalid(
            "LoRA is only compatible with NGRAM, EAGLE, NEXTN, EAGLE3, DFLASH, or DSPARK speculative decoding, not "
            f"{algorithm}{promoted}."
        )
    mode = environ.read(r, "SGLANG_RAGGED_VERIFY_MODE")
    runners = (args.moe_runner_backend, args.speculative_moe_runner_backend)
    for excluded, reason in (
        (
            algorithm == "DSPARK" and mode != "static",
            (
                f"does not support SGLANG_RAGGED_VERIFY_MODE={mode!r}: the per-request verify lengths it schedules "
                "break the "
                "uniform-width LoRA segment layout"
            ),
        ),
        (
            args.speculative_adaptive,
            (
                "does not support --speculative-adaptive: the draft is built from a static ServerArgs snapshot, and "
                "the runtime-state swap does not rebuild LoRA cuda-graph metadata"
            ),
        ),
        (
            "experimental_sgl_trtllm" in runners,
            (
                "does not support the experimental_sgl_trtllm MoE runner: its TopK reads the LoRA config per forward, "
                "which "
                "the draft resolves against the target's after its own publish ended"
            ),
        ),
        (
            environ.read(r, "SGLANG_ENABLE_OVERLAP_PLAN_STREAM"),
            (
                "does not support SGLANG_ENABLE_OVERLAP_PLAN_STREAM=1: LoRA batch preparation would run on the plan "
                "stream, "
                "unordered against in-flight forwards"
            ),
        ),
    ):
        if excluded:
            raise invalid(f"LoRA with EAGLE/NEXTN/EAGLE3 speculative decoding {reason}.")


def _expert_runner(r: Resolution, *, on: bool) -> None:
    args: Any = r.args
    drafts = args.speculative_moe_runner_backend
    if args.speculative_algorithm is not None and drafts is not None and drafts.startswith("lora"):
        raise invalid(
            f"--speculative-moe-runner-backend {drafts} is not supported: the LoRA MoE runner serves adapter "
            "traffic on "
            "the target model"
        )
    runner = args.moe_runner_backend
    if not runner.startswith("lora"):
        return
    option = f"--moe-runner-backend {runner}"
    if not on:
        raise invalid(f"{option} requires --enable-lora (or --lora-paths)")
    if args.lora_backend != "triton_v2":
        raise invalid(f"{option} requires --lora-backend triton_v2")
    _second_backend(r, option)
    if args.quantization not in (None, "fp8", "modelopt_fp4"):
        raise invalid(
            f"{option} supports unquantized BF16, 128-block FP8 and ModelOpt NVFP4 MoE, got --quantization "
            f"{args.quantization}"
        )
    if args.quantization == "modelopt_fp4" and runner != "lora_marlin":
        raise invalid(f"{option} cannot run ModelOpt NVFP4 MoE; use --moe-runner-backend lora_marlin")
    if args.moe_a2a_backend != "none":
        raise invalid(f"{option} requires Standard dispatch, got --moe-a2a-backend {args.moe_a2a_backend}")
    if args.ep_join_mode is not None:
        raise invalid(f"{option} does not yet support elastic EP")
    if args.enable_eplb or args.init_expert_location != "trivial" or args.ep_num_redundant_experts > 0:
        raise invalid(f"{option} currently requires trivial expert placement without EPLB or redundant experts")
