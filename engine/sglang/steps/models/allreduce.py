"""FlashInfer's fused all-reduce, where the engine turns it on by itself.

Source: SGLang 0.5.23, ``arg_groups/overrides.py`` (``_flashinfer_allreduce_fusion_auto_enable``).
"""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution

_MIMO = ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")
_CUTEDSL_TP = (2, 4, 8, 16)


def run(r: Resolution) -> None:
    """Turn the fusion on for the supported architectures, and off where the operator says so."""
    backend = _automatic(r)
    if backend is not None:
        r.set("flashinfer_allreduce_fusion_backend", backend, "supported here", layer="engine-default")
    if r.args.enforce_disable_flashinfer_allreduce_fusion:
        r.set("flashinfer_allreduce_fusion_backend", None, "forcibly disabled")


def _automatic(r: Resolution) -> str | None:
    args, model, platform = r.args, r.model, platform_of(r.hardware)
    mimo = model.arch in _MIMO and r.since(0, 5, 23)
    if mimo and not (
        platform.is_sm100
        and model.dtype == "bfloat16"
        and args.tp_size in _CUTEDSL_TP
        and args.attn_cp_size == 1
        and not args.encoder_only
        and not args.enable_pdmux
    ):
        return None
    custom = (
        r.since(0, 5, 21)
        and model.model_type == "deepseek_v41"
        and model.hf.get("hidden_size") == 5120
        and platform.is_blackwell
        and args.tp_size == 4
        and args.nnodes == 1
        and not args.disable_custom_all_reduce
    )
    if (
        args.flashinfer_allreduce_fusion_backend is None
        and (mimo or model.arch in model.lists.of("allreduce_fusion"))
        and not custom
        and (platform.is_sm90 or platform.is_sm100)
        and args.tp_size > 1
        and not attn_dp_enabled(args)
        and (args.nnodes == 1 or platform.is_sm100)
        and args.moe_a2a_backend == "none"
    ):
        return "cutedsl" if mimo else "auto"
    return None
