"""Families whose override is an MoE runner, or a switch beside it, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def bailing_v3(r: Resolution) -> Values:
    """Bailing V3 with FP8 weights and MXFP4 experts."""
    args, platform = r.args, platform_of(r.hardware)
    if args.moe_runner_backend != "auto" or args.device != "cuda" or args.moe_a2a_backend != "none":
        return {}
    if not (platform.is_sm90 or platform.is_sm100 or platform.is_sm120):
        return {}
    if r.model.quantization != "fp8" or not r.model.is_fp4_experts:
        return {}
    return {"moe_runner_backend": "flashinfer_mxfp4"}


def _nvfp4_packed(config: Any) -> bool:
    if not isinstance(config, Mapping):
        return False
    groups = config.get("config_groups") or {}
    formats = [config.get("format", ""), *(g.get("format", "") for g in groups.values() if isinstance(g, Mapping))]
    return any("nvfp4" in str(f) for f in formats)


def cohere2(r: Resolution) -> Values:
    """Command A Plus on datacenter Blackwell."""
    if r.args.moe_runner_backend != "auto" or not platform_of(r.hardware).is_sm100:
        return {}
    if r.model.quantization is not None and not _nvfp4_packed(r.model.hf.get("quantization_config")):
        return {}
    return {"moe_runner_backend": "flashinfer_trtllm"}


def gigachat(r: Resolution) -> Values:
    """GigaChat 3.5 keeps shared experts apart; its EAGLE drafts have several layers."""
    out: Values = {"disable_shared_experts_fusion": True}
    if r.args.speculative_algorithm == "EAGLE":
        out["enable_multi_layer_eagle"] = True
    return out


def mobius(r: Resolution) -> Values:
    """Intern-S2-Mobius has one validated runner."""
    return {"moe_runner_backend": "triton_kernel"} if r.args.moe_runner_backend == "auto" else {}


def minimax_m2(r: Resolution) -> Values:
    """MiniMax M2: TF32 gates; NVFP4 experts on datacenter Blackwell."""
    out: Values = {"enable_tf32_matmul": True}
    if (
        r.since(0, 5, 18)
        and platform_of(r.hardware).is_sm100
        and r.args.moe_runner_backend == "auto"
        and r.model.quantization == "modelopt_fp4"
    ):
        out["moe_runner_backend"] = "flashinfer_trtllm_routed"
    return out


def muse_glimmer(r: Resolution) -> Values:
    """Muse Glimmer's FP4 products on RTX Blackwell."""
    if platform_of(r.hardware).is_sm120 and r.args.fp4_gemm_runner_backend == "auto":
        return {"fp4_gemm_runner_backend": "marlin"}
    return {}


OVERRIDES = (
    Override(
        family="Bailing V3",
        look=bailing_v3,
        architectures=("BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"),
        since=(0, 5, 21),
    ),
    Override(
        family="Command A Plus",
        look=cohere2,
        architectures=("Cohere2VisionForConditionalGeneration", "Cohere2MoeForCausalLM"),
        since=(0, 5, 19),
    ),
    Override(
        family="GigaChat 3.5",
        look=gigachat,
        architectures=("GigaChat35ForCausalLM", "GigaChat35ForCausalLMNextN"),
        since=(0, 5, 21),
    ),
    Override(family="Intern-S2-Mobius", look=mobius, architectures=("InternS2MobiusForConditionalGeneration",)),
    Override(family="MiniMax M2", look=minimax_m2, architectures=("MiniMaxM2ForCausalLM",)),
    Override(
        family="Muse Glimmer",
        look=muse_glimmer,
        architectures=("MuseGlimmerForConditionalGeneration", "MuseGlimmerForCausalLM"),
    ),
)
