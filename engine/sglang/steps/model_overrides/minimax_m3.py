"""MiniMax M3: sparse attention over pages of 128 tokens, backends and MoE runners by GPU and checkpoint."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values

_VISION = "MiniMaxM3SparseForConditionalGeneration"
_NVFP4 = "minimax_m3_nvfp4"
_PAGE = 128


def _method(r: Resolution) -> str | None:
    config = r.model.hf.get("quantization_config") or {}
    method: str | None = config.get("quant_method")
    packed = config.get("moe_quant_format") == "nvfp4-pack-quantized"
    if method == "mxfp8" and str(config.get("moe_quant_algo", "")).upper() == "NVFP4" and packed:
        return _NVFP4
    return method


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    out: Values = {}
    paged: tuple[str, ...] = ()
    quantization = args.quantization
    method = _method(r) if r.since(0, 5, 23) else (r.model.hf.get("quantization_config") or {}).get("quant_method")
    if quantization is None and not args._quantization_explicitly_unset and method is not None:
        out["quantization"] = quantization = method
    if quantization == _NVFP4:
        return _nvfp4(r, out)
    if platform.is_sm100:
        if unset(args):
            fp8 = args.kv_cache_dtype == "fp8_e4m3" and not environ.read(r, "SGLANG_DISABLE_M3_FP8_ATTN_GEMM")
            out["attention_backend"] = "trtllm_mha" if fp8 and r.since(0, 5, 17) else "fa4"
        paged = ("fa4", "trtllm_mha") if r.since(0, 5, 17) else ("fa4",)
        if args.moe_runner_backend == "auto" and quantization == "mxfp8":
            out["moe_runner_backend"] = "deep_gemm"
        elif args.moe_runner_backend == "auto" and quantization == "modelopt_mixed" and r.since(0, 5, 17):
            out["moe_runner_backend"] = "flashinfer_trtllm_routed"
    elif platform.is_sm90:
        if unset(args):
            out["attention_backend"] = "fa3"
        paged = ("fa3",)
    if args.page_size is None and out.get("attention_backend", args.attention_backend) in paged:
        out["page_size"] = _PAGE
    runner = out.get("moe_runner_backend", args.moe_runner_backend)
    if quantization is None and runner in ("auto", "deep_gemm"):
        if runner == "deep_gemm":
            r.warn(
                "WARNING: MiniMax-M3: the deep_gemm MoE runner produces corrupted output on bf16 full weights; "
                "overriding --moe-runner-backend to 'triton'."
            )
        out["moe_runner_backend"] = "triton"
    return out


def _speculation(r: Resolution, out: Values) -> None:
    args, algorithm = r.args, r.args.speculative_algorithm
    if algorithm not in (None, "DSPARK", "DFLASH"):
        raise Refusal("ValueError", "M3.1 NVFP4 only supports DSPARK or DFLASH speculation")
    if algorithm is None:
        return
    for refused, message in (
        (r.model.arch != _VISION, f"M3.1 NVFP4 {algorithm} requires {_VISION}, got {r.model.arch}"),
        (not platform_of(r.hardware).is_blackwell, f"M3.1 NVFP4 {algorithm} requires Blackwell"),
        (
            environ.read(r, "SGLANG_RAGGED_VERIFY_MODE") != "static",
            f"M3.1 NVFP4 {algorithm} requires SGLANG_RAGGED_VERIFY_MODE=static",
        ),
        (args.pp_size != 1, f"M3.1 NVFP4 {algorithm} requires PP=1"),
        (
            algorithm == "DFLASH" and args.disaggregation_mode != "null",
            "M3.1 NVFP4 DFLASH currently requires colocated serving",
        ),
    ):
        if refused:
            raise Refusal("ValueError", message)
    if args.speculative_draft_kv_cache_dtype in (None, "auto"):
        out["speculative_draft_kv_cache_dtype"] = "bf16"
    if algorithm == "DSPARK" and args.speculative_draft_attention_backend is None:
        out["speculative_draft_attention_backend"] = "trtllm_mha"


def _nvfp4(r: Resolution, out: Values) -> Values:
    args = r.args
    _speculation(r, out)
    if args.page_size not in (None, _PAGE):
        raise Refusal("ValueError", "M3.1 NVFP4 requires --page-size 128")
    out["page_size"] = _PAGE
    if not platform_of(r.hardware).is_blackwell:
        if args.moe_runner_backend == "auto":
            out["moe_runner_backend"] = "marlin"
        if unset(args):
            out["attention_backend"] = "fa3"
        return out
    served = args.moe_a2a_backend in ("none", "megamoe")
    if args.moe_runner_backend == "flashinfer_trtllm_routed":
        if not served:
            raise Refusal(
                "ValueError", "M3.1 NVFP4 flashinfer_trtllm_routed requires --moe-a2a-backend none or megamoe"
            )
    else:
        if not served:
            raise Refusal("ValueError", "M3.1 NVFP4 requires --moe-a2a-backend megamoe")
        out["moe_a2a_backend"] = "megamoe"
        if args.moe_runner_backend == "auto":
            out["moe_runner_backend"] = "deep_gemm"
    if args.kv_cache_dtype == "auto":
        out["kv_cache_dtype"] = "fp8_e4m3"
    elif args.kv_cache_dtype != "fp8_e4m3":
        raise Refusal("ValueError", "M3.1 NVFP4 requires --kv-cache-dtype fp8_e4m3")
    if unset(args):
        out["attention_backend"] = "trtllm_mha"
    return out


OVERRIDES = (
    Override(
        family="MiniMax M3",
        look=look,
        architectures=("MiniMaxM3SparseForCausalLM", _VISION),
        since=(0, 5, 16),
    ),
)
