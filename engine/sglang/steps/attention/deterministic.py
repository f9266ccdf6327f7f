"""Deterministic inference: backends whose results do not depend on the batch, and no radix cache on the others.

Source: SGLang 0.5.23, ``arg_groups/attention_hook.py`` (``handle_deterministic_inference``).
"""

from __future__ import annotations

from engine.sglang.derived import connector_type
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.versioned import FIRST, at

_DEEPSEEK = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
    }
)
_GLM4_LITE = frozenset({"Glm4MoeLiteForCausalLM"})
_ABSORBED_MLA: tuple[tuple[Version, frozenset[str]], ...] = (((0, 5, 18), _DEEPSEEK | _GLM4_LITE), (FIRST, _DEEPSEEK))
_CHECKED: tuple[tuple[Version, frozenset[str]], ...] = (
    ((0, 5, 20), _DEEPSEEK | _GLM4_LITE | {"Glm5NextForConditionalGeneration"}),
    *_ABSORBED_MLA,
)
_DEEPSEEK_BEFORE = ("fa3", "triton")


def run(r: Resolution) -> None:
    """Choose or check the backend; switch off what makes results depend on the batch."""
    args = r.args
    if args.rl_on_policy_target is not None:
        r.warn("WARNING: Enable deterministic inference because of rl_on_policy_target.")
        r.set("enable_deterministic_inference", True, "training on the policy's own outputs needs equal results")
    if not args.enable_deterministic_inference:
        return
    why = "deterministic inference"
    if args.enable_aiter_allreduce_fusion:
        r.set("enable_aiter_allreduce_fusion", False, why)
    if args.flashinfer_allreduce_fusion_backend is not None:
        r.warn("WARNING: Disable --flashinfer-allreduce-fusion-backend because deterministic inference is enabled.")
        r.set("flashinfer_allreduce_fusion_backend", None, why)
    if args.sampling_backend != "ascend":
        r.warn("WARNING: Sampling backend is set to pytorch for deterministic inference.")
        r.set("sampling_backend", "pytorch", why)
    arch = "" if connector_type(args.model_path) == "instance" else _arch(r)
    _backend(r, arch)
    backend = args.attention_backend
    supported = list(r.release.tables["choices"]["RADIX_SUPPORTED_DETERMINISTIC_ATTENTION_BACKEND"])
    if arch in at(_CHECKED, r.release.version):
        family = "absorbed-MLA" if r.since(0, 5, 18) else "DeepSeek"
        if not r.since(0, 5, 17) and backend not in _DEEPSEEK_BEFORE:
            named = list(_DEEPSEEK_BEFORE) if r.since(0, 5, 16) else supported
            raise Refusal(
                "ValueError",
                f"Currently only {named} attention backends are supported for deterministic inference with DeepSeek "
                f"models. But you're using {backend}.",
            )
        if backend not in supported:
            raise Refusal(
                "ValueError",
                f"Currently only {supported} attention backends are supported for deterministic inference with "
                f"{family} models. But you're using {backend}.",
            )
        if backend == "fa4" and not platform_of(r.hardware).is_sm100_or_sm110:
            raise Refusal(
                "ValueError",
                f"Deterministic inference with {family} models on the fa4 attention backend requires SM100/SM110: "
                "it runs absorbed MLA, whose qv argument flash_attn.cute only implements on those archs.",
            )
    if backend not in supported:
        r.set("disable_radix_cache", True, f"the {backend} backend is not deterministic over a shared prefix")
        r.warn(
            f"WARNING: Currently radix cache is not compatible with {backend} attention backend for deterministic "
            "inference. It will be supported in the future."
        )
    if args.tp_size > 1:
        r.set("disable_custom_all_reduce", True, why)
        r.set("enable_torch_symm_mem", False, why)
        r.warn(
            "WARNING: NCCL_ALGO is set to 'allreduce:tree', the NCCL channel count is pinned, and custom and "
            "symmetric-memory all reduce are disabled for deterministic inference when TP size > 1."
        )


def _arch(r: Resolution) -> str:
    try:
        return r.model.arch
    except Refusal:  # the engine looks at the model here and goes on without it
        return ""


def _backend(r: Resolution, arch: str) -> None:
    choices = list(r.release.tables["choices"]["DETERMINISTIC_ATTENTION_BACKEND_CHOICES"])
    given = r.args.attention_backend
    if given is None:
        platform = platform_of(r.hardware)
        backend = "fa3"
        if platform.is_sm100 or platform.is_sm120:
            backend = "triton" if arch in at(_ABSORBED_MLA, r.release.version) else "flashinfer"
        r.warn(
            f"WARNING: Attention backend not specified. Falling back to '{backend}' for deterministic inference. "
            f"You can explicitly set --attention-backend to one of {choices}."
        )
        r.set("attention_backend", backend, "the deterministic backend of this GPU", layer="engine-default")
    elif given not in choices:
        raise Refusal(
            "ValueError",
            f"Currently only {choices} attention backends are supported for deterministic inference, "
            f"but you explicitly specified '{given}'.",
        )
