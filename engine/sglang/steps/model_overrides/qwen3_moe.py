"""Qwen3 MoE and its kin on datacenter Blackwell: the checkpoint's quantization and its MoE runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sglang import environ
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def _w4a16_experts(config: Mapping[str, Any]) -> bool:
    return any(
        str(layer.get("quant_algo", "")).upper() == "W4A16_NVFP4"
        for name, layer in config.get("quantized_layers", {}).items()
        if ".experts" in name and isinstance(layer, Mapping)
    )


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args = r.args
    if not platform_of(r.hardware).is_sm100:
        return {}
    out: Values = {}
    config = r.model.hf.get("quantization_config") or {}
    quantization, method = args.quantization, config.get("quant_method")
    if quantization is None and not args._quantization_explicitly_unset and method is not None:
        out["quantization"] = quantization = method
    runner, a2a = args.moe_runner_backend, args.moe_a2a_backend
    mixed = ("modelopt_mixed",) if r.since(0, 5, 20) else ()
    if quantization in mixed and _w4a16_experts(config):
        cutedsl = (
            runner == "flashinfer_cutedsl"
            and a2a in ("none", "flashinfer")
            and environ.read(r, "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")
        )
        if runner not in ("auto", "marlin") and not cutedsl:
            raise Refusal(
                "ValueError",
                "W4A16_NVFP4 MoE layers require --moe-runner-backend=marlin, or flashinfer_cutedsl with "
                "--moe-a2a-backend=none/flashinfer and SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1.",
            )
        if runner == "auto":
            out["moe_runner_backend"] = "marlin"
    elif quantization in ("fp8", "modelopt_fp4", *mixed, None) and a2a == "none" and runner == "auto":
        out["moe_runner_backend"] = "flashinfer_trtllm"
    return out


OVERRIDES = (
    Override(
        family="Qwen3 MoE",
        look=look,
        architectures=(
            "Qwen3MoeForCausalLM",
            "Qwen3VLMoeForConditionalGeneration",
            "Qwen3NextForCausalLM",
            "Qwen3_5MoeForConditionalGeneration",
            "InternS2PreviewForConditionalGeneration",
            "Qwen3_5ForConditionalGeneration",
        ),
    ),
    Override(family="Qwen4-Exp", look=look, architectures=("Qwen4ExpForConditionalGeneration",), since=(0, 5, 20)),
)
