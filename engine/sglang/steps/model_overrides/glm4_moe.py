"""GLM-4.5: the checkpoint's quantization and its MoE runner on datacenter Blackwell; TF32 gates."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args = r.args
    out: Values = {"enable_tf32_matmul": True}
    if not platform_of(r.hardware).is_sm100:
        return out
    method = (r.model.hf.get("quantization_config") or {}).get("quant_method")
    quantization = args.quantization
    if quantization is None and not args._quantization_explicitly_unset and method is not None:
        out["quantization"] = quantization = method
    if quantization in ("modelopt_fp4", None) and args.moe_a2a_backend == "none" and args.moe_runner_backend == "auto":
        out["moe_runner_backend"] = "flashinfer_trtllm"
    return out


OVERRIDES = (Override(family="GLM-4.5", look=look, architectures=("Glm4MoeForCausalLM",)),)
