"""Beam: TRT-LLM MHA where it runs, and its runner for NVFP4 experts."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """Attention and MoE runner by GPU and checkpoint format."""
    args, platform = r.args, platform_of(r.hardware)
    out: Values = {}
    if unset(args) and (platform.is_sm90 or platform.is_sm100 or platform.is_sm120):
        out["attention_backend"] = "trtllm_mha"
    config = r.model.hf.get("quantization_config") or {}
    quantization = args.quantization or config.get("quant_method")
    if quantization == "modelopt":
        quantization = config.get("quant_algo")
    if (
        quantization in ("modelopt_fp4", "NVFP4")
        and platform.is_sm100
        and args.moe_runner_backend == "auto"
        and args.moe_a2a_backend == "none"
    ):
        out["moe_runner_backend"] = "flashinfer_trtllm"
    return out


OVERRIDES = (Override(family="Beam", look=look, architectures=("BeamForCausalLM",), since=(0, 5, 23)),)
