"""Llama 4: a backend with chunked local attention, and its runner for FP8 experts on datacenter Blackwell."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values

ARCHITECTURES = ("Llama4ForConditionalGeneration", "Llama4ForCausalLM")


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    if args.device == "cpu":
        return {}
    out: Values = {}
    if args.attention_backend is None:
        backend, where = (
            ("trtllm_mha", "sm100")
            if platform.is_sm100
            else ("fa3", "sm90")
            if platform.is_sm90
            else ("triton", "other platforms")
        )
        r.warn(f"WARNING: Use {backend} as attention backend on {where} for Llama4 model")
        out["attention_backend"] = backend
    if platform.is_sm100 and args.moe_runner_backend == "auto" and args.quantization in ("fp8", "modelopt_fp8"):
        out["moe_runner_backend"] = "flashinfer_trtllm"
    return out


OVERRIDES = (Override(family="Llama 4", look=look, architectures=ARCHITECTURES),)
