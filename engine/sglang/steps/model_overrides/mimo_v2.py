"""MiMo V2: FlashAttention 4 on datacenter Blackwell for its unequal K and V rows, runners by expert layout."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    out: Values = {}
    if args.speculative_algorithm == "EAGLE":
        out["enable_multi_layer_eagle"] = True
    if platform.is_sm100 and unset(args) and r.since(0, 5, 22):
        out["attention_backend"] = "fa4"
    fp8 = (r.model.hf.get("quantization_config") or {}).get("quant_method") == "fp8"
    if args.moe_runner_backend == "auto" and fp8 and not r.since(0, 5, 22):
        if platform.is_sm100 and r.since(0, 5, 17):
            out["moe_runner_backend"] = "flashinfer_trtllm"
    elif args.moe_runner_backend == "auto" and fp8:
        if platform.is_sm100:
            if args.moe_a2a_backend == "none":
                out["moe_runner_backend"] = "flashinfer_mxfp4" if r.model.is_fp4_experts else "flashinfer_trtllm"
        elif platform.is_sm90 and r.model.is_fp4_experts:
            out["moe_runner_backend"] = "marlin"
    return out


OVERRIDES = (Override(family="MiMo V2", look=look, architectures=("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")),)
