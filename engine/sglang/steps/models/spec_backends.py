"""Kernels for linear attention that Kimi and GLM-5-Next take under speculative decoding.

Source: SGLang 0.5.23, ``arg_groups/kimi_k3_hook.py`` and ``arg_groups/glm5_next_hook.py``.
"""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution

_KIMI = ("KimiLinearForCausalLM", "KimiK3ForConditionalGeneration")


def run(r: Resolution) -> None:
    """Fill in what nobody set."""
    args, sm100 = r.args, platform_of(r.hardware).is_sm100
    if r.model.arch in _KIMI and r.since(0, 5, 17):
        if args.linear_attn_decode_backend is None and args.mamba_ssm_dtype == "bfloat16" and sm100:
            r.set("linear_attn_decode_backend", "triton", "faster on KDA shapes", layer="engine-default")
        if args.speculative_algorithm is None:
            return
        if args.linear_attn_verify_backend is None:
            r.set("linear_attn_verify_backend", "nv_cutedsl", "the fused KDA verification", layer="engine-default")
        if args.speculative_algorithm == "DSPARK" and args.speculative_draft_attention_backend is None and sm100:
            r.set("speculative_draft_attention_backend", "trtllm_mha", "the draft is dense", layer="engine-default")
    elif (
        r.since(0, 5, 22)
        and r.model.arch == "Glm5NextForConditionalGeneration"
        and args.speculative_algorithm is not None
        and args.linear_attn_verify_backend is None
        and sm100
    ):
        r.set("linear_attn_verify_backend", "nv_cutedsl", "the fused KDA verification", layer="engine-default")
