"""The engine's model-specific adjustments, in its order: checks, recurrent state, family overrides, family hooks.

Source: SGLang 0.5.23, ``arg_groups/model_hook.py`` (``handle_model_specific_adjustments``).
"""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import connector_type, knows_architecture
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps import mamba, model_overrides
from engine.sglang.steps.models import allreduce, deepseek, deepseek_v4, families, spec_backends

_CP_DECODE = (
    "DeepseekV4ForCausalLM",
    "DeepseekV4ForCausalLMDSpark",
    "DeepseekV4ForCausalLMNextN",
    "GlmMoeDsaForCausalLM",
    "GlmMoeDsaForCausalLMNextN",
)


def run(r: Resolution) -> None:
    """Apply everything that the model's architecture decides."""
    args = r.args
    if args.enable_deterministic_inference:
        r.set("enforce_disable_flashinfer_allreduce_fusion", True, "deterministic inference")
    r.set("uses_mamba_radix_cache", False, "not yet known", layer="engine-default")
    if connector_type(args.model_path) == "instance":
        return
    _check_architecture(r)
    spec = r.model.linear_spec
    if spec is not None and spec["radix"]:
        mamba.radix_cache(r)
    model_overrides.run(r)
    spec_backends.run(r)
    if r.model.arch == "DeepseekV4ForCausalLM":
        deepseek_v4.defaults(r)
    if deepseek.applies(r) and knows_architecture(r):
        deepseek.run(r)
    elif r.model.arch == "DeepseekV4ForCausalLM":
        deepseek_v4.validate(r)
    else:
        families.run(r)
    mamba.radix_cache(r)
    if environ.is_set(r, "SGLANG_EMBEDDINGS_SPARSE_HEAD"):
        r.warn("WARNING: Overlap scheduler is disabled when using sparse head for embedding model.")
        r.set("disable_overlap_schedule", True, "a sparse embedding head does not overlap")
    allreduce.run(r)


def _check_architecture(r: Resolution) -> None:
    args, model = r.args, r.model
    if model.arch == "InternS2MobiusForConditionalGeneration" and knows_architecture(r):
        unsupported = []
        if args.pp_size != 1:
            unsupported.append("pipeline parallelism (--pp-size must be 1)")
        if args.ep_size != 1:
            unsupported.append("expert parallelism (--ep-size must be 1)")
        if unsupported:
            raise Refusal("ValueError", "Intern-S2-Mobius does not support: " + "; ".join(unsupported) + ".")
    if args.enable_dsa_cache_layer_split and not model.is_deepseek_dsa:
        raise Refusal(
            "ValueError",
            "--enable-dsa-cache-layer-split is only supported for DSA (DeepSeek Sparse Attention) models.",
        )
    if args.enable_cp_decode_attn_tp and model.arch not in _CP_DECODE:
        raise Refusal(
            "ValueError",
            "--enable-cp-decode-attn-tp is only supported for models whose attention linears are replicated across CP "
            f"ranks (attn_tp_size=1). Got {model.arch}; supported: {sorted(_CP_DECODE)}.",
        )
