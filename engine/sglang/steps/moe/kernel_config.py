"""Which kernels run the experts: what the quantization asks for, and what each runner can take."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, require
from engine.sglang.versioned import FIRST, at

_TAKES: dict[str, tuple[tuple[str | None, ...], str, str]] = {
    "flashinfer_cutlass": (
        ("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", None),
        "FlashInfer Cutlass MOE supports only",
        "'modelopt_fp4', 'modelopt_fp8', 'modelopt_mixed', or bfloat16 (None).",
    ),
    "flashinfer_trtllm": (
        (
            "modelopt_fp4",
            "nvfp4_online",
            "fp8",
            "mxfp8",
            "modelopt_fp8",
            "modelopt_mixed",
            "compressed-tensors",
            None,
        ),
        "FlashInfer TRTLLM MOE supports only",
        (
            "'modelopt_fp4', 'nvfp4_online', 'fp8', 'modelopt_fp8', 'modelopt_mixed', 'compressed-tensors', or "
            "bfloat16 (None)."
        ),
    ),
    "flashinfer_trtllm_routed": (
        ("fp8", "mxfp8", "modelopt_fp4", "modelopt_mixed", "nvfp4_online", "minimax_m3_nvfp4", None),
        "FlashInfer TRTLLM routed MOE supports only",
        "'fp8', 'mxfp8', 'modelopt_fp4', 'modelopt_mixed', 'nvfp4_online', 'minimax_m3_nvfp4', or bfloat16 (None).",
    ),
}
_MIXED = "modelopt_mixed"  # taken by the routed runner from 0.5.16 on
_M3_NVFP4 = "minimax_m3_nvfp4"  # taken from 0.5.23 on
_TAKES["experimental_sgl_trtllm"] = _TAKES["flashinfer_trtllm"]
_MXFP8_BEFORE = ("cutlass", "flashinfer_trtllm", "flashinfer_trtllm_routed")  # no list of the release's until 0.5.15
_SPANS = "The expert parallel size must be 1 or the same as the tensor parallel size"
_CUTEDSL: tuple[tuple[Version, tuple[tuple[str, ...], str, bool]], ...] = (
    (
        (0, 5, 18),
        (
            ("modelopt_fp4", "modelopt_mixed", "nvfp4_online"),
            "'modelopt_fp4', 'modelopt_mixed' (with NVFP4 MoE layers), 'nvfp4_online', or hybrid NVFP4 models",
            True,
        ),
    ),
    (
        (0, 5, 16),
        (
            ("modelopt_fp4", "modelopt_mixed"),
            "'modelopt_fp4', 'modelopt_mixed' (with NVFP4 MoE layers), or hybrid NVFP4 models",
            True,
        ),
    ),
    ((0, 5, 15), (("modelopt_fp4",), "'modelopt_fp4' or hybrid NVFP4 models", True)),
    (FIRST, (("modelopt_fp4",), "'modelopt_fp4'", False)),
)
_SEPARATE_SHARED_EXPERTS = frozenset(
    {
        "lora_triton",
        "lora_cutedsl",
        "lora_marlin",
        "flashinfer_cutedsl",
        "flashinfer_trtllm",
        "experimental_sgl_trtllm",
        "flashinfer_trtllm_routed",
    }
)


def run(r: Resolution) -> None:
    """Choose the runner where it is left open, then check it."""
    args = r.args
    _by_quantization(r)
    if args.moe_runner_backend != "auto":
        _check(r, args.moe_runner_backend)
    if not r.since(0, 5, 18) and environ.read(r, "SGLANG_CUTLASS_MOE"):
        require(args.quantization in ("fp8", "mxfp8"), "cutlass MoE is only supported with fp8/mxfp8 quantization")
        r.set("moe_runner_backend", "cutlass", "SGLANG_CUTLASS_MOE is set")
    if args.moe_runner_backend == "cutlass" and args.quantization in ("fp8", "mxfp8"):
        require(args.ep_size == 1, "FP8/MXFP8 Cutlass MoE is only supported with ep_size == 1")


def _check(r: Resolution, runner: str) -> None:
    args = r.args
    row = _TAKES.get(runner)
    if row is not None:
        accepted, says, names = row
        if not r.since(0, 5, 23):
            accepted = tuple(name for name in accepted if name != _M3_NVFP4)
            names = names.replace(f"'{_M3_NVFP4}', ", "")
        if runner == "flashinfer_trtllm_routed" and not r.since(0, 5, 16):
            accepted = tuple(name for name in accepted if name != _MIXED)
            names = names.replace(f"'{_MIXED}', ", "")
        require(args.quantization in accepted, f"Invalid quantization '{args.quantization}'. \n{says}: {names}")
    if runner == "flashinfer_cutlass":
        require(args.ep_size in (1, args.tp_size), _SPANS)
    if runner == "flashinfer_cutedsl":
        _cutedsl(r)
    if runner in _SEPARATE_SHARED_EXPERTS:
        r.set("disable_shared_experts_fusion", True, f"{runner} keeps shared experts separate")


def _cutedsl(r: Resolution) -> None:
    args = r.args
    online = ("nvfp4_online",) if r.since(0, 5, 18) else ()
    accepted, named, hybrid = at(_CUTEDSL, r.release.version)
    require(
        args.quantization in accepted or (hybrid and r.model.nvfp4_moe),
        f"Invalid quantization '{args.quantization}'. \nFlashInfer CuteDSL MOE currently supports only: {named}.",
    )
    require(args.ep_size in (1, args.tp_size), _SPANS)
    require(
        args.moe_a2a_backend in ("none", "deepep", "flashinfer"),
        f"flashinfer_cutedsl supports moe_a2a_backend='none', 'deepep', or 'flashinfer', got '{args.moe_a2a_backend}'.",
    )
    if (
        online
        and args.moe_a2a_backend == "deepep"
        and (args.quantization == "nvfp4_online" or environ.read(r, "SGLANG_FLASHINFER_NVFP4_PER_TOKEN_ACTIVATION"))
    ):
        raise invalid("flashinfer_cutedsl per-token NVFP4 activation requires moe_a2a_backend='none' or 'flashinfer'.")


def _by_quantization(r: Resolution) -> None:
    args = r.args
    quantization, runner = args.quantization, args.moe_runner_backend
    if quantization == "nvfp4_online":
        _nvfp4_online(r)
    elif quantization == "mxfp8":
        chosen = "flashinfer_megamoe" if args.moe_a2a_backend == "flashinfer_megamoe" else "flashinfer_trtllm"
        allowed = r.release.tables["choices"].get("MXFP8_MOE_RUNNER_BACKEND_CHOICES", _MXFP8_BEFORE)
        if runner == "auto":
            r.set("moe_runner_backend", chosen, "for MXFP8", layer="engine-default")
        elif runner not in allowed:
            r.warn(f"WARNING: mxfp8 quantization supports only {', '.join(allowed)} backends. Overriding {runner!r}.")
            r.set("moe_runner_backend", chosen, f"MXFP8 does not run on {runner}")
    elif quantization == "modelopt_fp4" and runner == "auto":
        gpu = platform_of(r.hardware)
        if gpu.is_sm120 or (gpu.is_sm110 and r.since(0, 5, 22)):
            r.set("moe_runner_backend", "flashinfer_cutlass", "for NVFP4 on this GPU", layer="engine-default")


def _nvfp4_online(r: Resolution) -> None:
    args = r.args
    runner = args.moe_runner_backend
    if not platform_of(r.hardware).is_sm100:
        raise invalid("--quantization nvfp4_online is supported only on NVIDIA Blackwell SM100/SM103 GPUs.")
    mega = (
        r.since(0, 5, 23)
        and args.moe_a2a_backend == "flashinfer_megamoe"
        and environ.read(r, "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")
    )
    if runner == "auto":
        chosen = "flashinfer_megamoe" if mega else "flashinfer_trtllm"
        r.set("moe_runner_backend", chosen, "for online NVFP4", layer="engine-default")
    elif not r.since(0, 5, 18):
        if runner not in ("flashinfer_trtllm", "flashinfer_trtllm_routed"):
            raise invalid(
                "--quantization nvfp4_online supports only --moe-runner-backend flashinfer_trtllm or "
                "flashinfer_trtllm_routed."
            )
    elif runner not in ("flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl") and not (
        runner == "flashinfer_megamoe" and mega
    ):
        besides = (
            "; flashinfer_megamoe requires --moe-a2a-backend flashinfer_megamoe and "
            "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1"
            if r.since(0, 5, 23)
            else ""
        )
        raise invalid(
            "--quantization nvfp4_online supports only --moe-runner-backend flashinfer_trtllm or "
            f"flashinfer_trtllm_routed, or flashinfer_cutedsl{besides}."
        )
