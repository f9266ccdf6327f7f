"""Step 3.5 and 3.7: FlashAttention, drafts of several layers, one pool under a hierarchical cache."""

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
        if platform.is_blackwell:
            out["attention_backend"] = "fa4"
        elif platform.is_sm90:
            out["attention_backend"] = "fa3"
    if args.speculative_algorithm == "EAGLE":
        out["enable_multi_layer_eagle"] = True
    if args.enable_hierarchical_cache:
        r.warn("WARNING: Reset swa_full_tokens_ratio to 1.0 for Step3p5ForCausalLM model with hierarchical cache")
        r.warn("WARNING: Disable hybrid SWA memory for Step3p5ForCausalLM model with hierarchical cache")
        out |= {"swa_full_tokens_ratio": 1.0, "disable_hybrid_swa_memory": True}
    return out


OVERRIDES = (
    Override(family="Step 3.5", look=look, containing=("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration")),
)
