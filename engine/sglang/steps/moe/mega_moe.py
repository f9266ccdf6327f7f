"""MegaMoE: dispatch, experts and combine in one kernel, chosen as an all-to-all backend."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """``--moe-runner-backend megamoe`` is an alias; then overlap modes and GPU are checked (from 0.5.21 on)."""
    args = r.args
    if args.moe_runner_backend == "megamoe":
        if args.moe_a2a_backend not in ("none", "megamoe"):
            r.warn(
                "WARNING: --moe-runner-backend megamoe is an alias for --moe-a2a-backend megamoe; overriding "
                f"--moe-a2a-backend {args.moe_a2a_backend}."
            )
        why = "--moe-runner-backend megamoe is an alias for --moe-a2a-backend megamoe"
        r.set("moe_runner_backend", "auto", why)
        r.set("moe_a2a_backend", "megamoe", why)
    if args.moe_a2a_backend != "megamoe" or not r.since(0, 5, 21):
        return
    if args.enable_two_batch_overlap or args.enable_single_batch_overlap:
        raise invalid(
            "--moe-a2a-backend megamoe has no two-batch / single-batch overlap decomposition; disable "
            "--enable-two-batch-overlap and --enable-single-batch-overlap."
        )
    gpu = platform_of(r.hardware)
    if not (gpu.is_sm90 or gpu.is_sm100):
        raise invalid(
            "--moe-a2a-backend megamoe needs a CUDA SM90 GPU (block-FP8 experts) or an SM100-class GPU (MXFP4 / NVFP4 "
            "experts); it runs DeepGEMM kernels over CUDA symmetric memory. On ROCm, set "
            "SGLANG_AMD_USE_FLYDSL_MEGA_MOE=1 to select aiter MegaMoEv2 instead."
        )
