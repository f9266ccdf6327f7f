"""Qwen3-Next and Qwen3.5 on datacenter Blackwell: TRT-LLM MHA over pages of 64, or Triton over single tokens."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.attention.default import default_backend
from engine.sglang.steps.mamba import extra_buffer
from engine.sglang.steps.model_overrides.base import Override, Values


def hybrid_on_sm100(r: Resolution) -> Values:
    """Backend and page size; the radix-cache strategy has been resolved before."""
    args = r.args
    if not platform_of(r.hardware).is_sm100 or args.attention_backend is not None:
        return {}
    single_tokens = not extra_buffer(args) and not args.disable_radix_cache and args.speculative_algorithm is None
    if default_backend(r) == "trtllm_mha" and not single_tokens:
        return {"attention_backend": "trtllm_mha", "page_size": 64}
    return {"attention_backend": "triton", "page_size": 1}


OVERRIDES = (
    Override(
        family="Qwen3.5 hybrids",
        look=hybrid_on_sm100,
        architectures=(
            "Qwen3NextForCausalLM",
            "Qwen3_5MoeForConditionalGeneration",
            "InternS2PreviewForConditionalGeneration",
            "InternS2MobiusForConditionalGeneration",
            "Qwen3_5ForConditionalGeneration",
        ),
    ),
)
