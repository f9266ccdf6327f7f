"""gpt-oss: a backend with attention sinks, bfloat16 for MXFP4 checkpoints, its MoE runner."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    out: Values = {}
    if unset(args):
        out["attention_backend"] = "trtllm_mha" if platform.is_sm100 else "fa3" if platform.is_sm90 else "triton"
    mxfp4 = (r.model.hf.get("quantization_config") or {}).get("quant_method") == "mxfp4"
    if mxfp4:
        out["dtype"] = "bfloat16"
    if args.moe_runner_backend == "auto":
        if mxfp4 and platform.is_sm120 and not r.since(0, 5, 17):
            out["moe_runner_backend"] = "marlin"
            r.warn(
                "WARNING: Detected SM120 and MXFP4 quantization format for GPT-OSS model, enabling Marlin MOE kernel."
            )
        elif mxfp4 and (platform.is_sm100 or platform.is_sm120):
            out["moe_runner_backend"] = "flashinfer_mxfp4"
            r.warn(
                "WARNING: Detected MXFP4 quantization format for GPT-OSS model, enabling FlashInfer MXFP4 MOE kernel."
            )
        elif args.ep_size == 1 and args.quantization is None:
            # The engine asks the driver here; these releases' images have one that is new enough on Blackwell.
            out["moe_runner_backend"] = "triton" if platform.is_blackwell else "triton_kernel"
    return out


OVERRIDES = (Override(family="gpt-oss", look=look, architectures=("GptOssForCausalLM",)),)
