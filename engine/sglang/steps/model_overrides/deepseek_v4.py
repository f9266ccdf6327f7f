"""DeepSeek V4: its own attention backend on pages of 256 tokens, and runners for FP4 experts."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, model, platform = r.args, r.model, platform_of(r.hardware)
    out: Values = {"attention_backend": "dsv4"}
    config = model.hf.get("quantization_config") or {}
    v41 = model.model_type == "deepseek_v41" and r.since(0, 5, 21)
    if (
        v41
        and args.device == "cuda"
        and platform.is_sm100
        and args.fp8_gemm_runner_backend == "auto"
        and config.get("quant_method") == "fp8"
        and config.get("weight_block_size") == [32, 32]
        and config.get("scale_fmt") == "ue8m0"
    ):
        out["fp8_gemm_runner_backend"] = "flashinfer_cutedsl"
    if args.swa_full_tokens_ratio == r.release.defaults["swa_full_tokens_ratio"] and not v41:
        out["swa_full_tokens_ratio"] = 0.1
    out["page_size"] = 256
    if args.moe_runner_backend == "auto":
        if model.nvfp4_moe:
            out["moe_runner_backend"] = "flashinfer_trtllm_routed"
        elif not r.since(0, 5, 19):
            if platform.is_sm120:
                out["moe_runner_backend"] = "flashinfer_mxfp4" if r.since(0, 5, 16) else "marlin"
        elif (
            args.device == "cuda"
            and args.moe_a2a_backend == "none"
            and not environ.read(r, "SGLANG_DSV4_FP4_DEQUANT")
            and model.is_fp4_experts
            and (platform.is_sm90 or platform.is_sm100 or platform.is_sm120)
        ):
            out["moe_runner_backend"] = "flashinfer_mxfp4"
    return out


OVERRIDES = (Override(family="DeepSeek V4", look=look, architectures=("DeepseekV4ForCausalLM",)),)
