"""Gemma 4: Triton, or TRT-LLM MHA on datacenter Blackwell; its runner for NVFP4 experts."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values

SERVING = ("Gemma4ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4UnifiedForConditionalGeneration")
_DIFFUSION = "DiffusionGemmaForBlockDiffusion"


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, sm100 = r.args, platform_of(r.hardware).is_sm100
    out: Values = {}
    if args.attention_backend is None:
        out["attention_backend"] = "trtllm_mha" if sm100 and r.model.arch != _DIFFUSION else "triton"
    if sm100 and args.moe_runner_backend == "auto" and r.model.quantization == "modelopt_fp4":
        out |= {"quantization": "modelopt_fp4", "moe_runner_backend": "flashinfer_trtllm"}
    return out


OVERRIDES = (
    Override(family="Gemma 4", look=look, architectures=SERVING),
    Override(family="DiffusionGemma", look=look, architectures=(_DIFFUSION,), since=(0, 5, 21)),
)
