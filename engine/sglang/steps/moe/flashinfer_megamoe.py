"""FlashInfer's MegaMoE: models and formats that it is validated for, on SM100 only."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid, require

_VALIDATED = (
    "BeamForCausalLM",
    "DeepseekV2ForCausalLM",
    "DeepseekV32ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV4ForCausalLM",
    "Glm4MoeForCausalLM",
    "GlmMoeDsaForCausalLM",
    "KimiK3ForConditionalGeneration",
    "KimiK3LinearForCausalLM",
    "NemotronHForCausalLM",
    "NemotronHPuzzleForCausalLM",
    "Qwen2MoeForCausalLM",
    "Qwen3MoeForCausalLM",
)
_SINCE_0_5_23 = frozenset({"BeamForCausalLM", "KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM"})
_SINCE_0_5_21 = frozenset({"GlmMoeDsaForCausalLM"})
_COMBINE = "SGLANG_FLASHINFER_MEGAMOE_COMBINE_DTYPE"


def run(r: Resolution) -> None:
    """Model, formats, environment, topology, runner, GPU: in the engine's order."""
    args, model = r.args, r.model
    w4a16 = r.since(0, 5, 23) and environ.read(r, "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")
    later = frozenset() if r.since(0, 5, 23) else _SINCE_0_5_23
    later = later if r.since(0, 5, 21) else later | _SINCE_0_5_21
    validated = [name for name in _VALIDATED if name not in later]
    if not any(name in validated for name in model.architectures):
        raise invalid(
            f"FlashInfer MegaMOE is not validated for model architectures {list(model.architectures)}. Supported "
            f"architectures: {validated}."
        )
    formats = (
        "hybrid NVFP4 MoE checkpoints, or nvfp4_online with SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1"
        if r.since(0, 5, 23)
        else "or hybrid NVFP4 MoE checkpoints"
    )
    if not (
        args.quantization in ("mxfp8", "modelopt_fp4")
        or (args.quantization == "nvfp4_online" and w4a16)
        or model.is_fp4_experts
        or model.nvfp4_moe
    ):
        raise invalid(
            f"FlashInfer MegaMOE currently supports only MXFP8, ModelOpt NVFP4, FP4-expert, {formats}; got "
            f"quantization={args.quantization!r}. Standard FP8 MoE checkpoints are not supported."
        )
    _environment(r, w4a16=w4a16)
    if w4a16 and model.dtype != "bfloat16":
        raise invalid("FlashInfer MegaMOE NVFP4 W4A16 requires --dtype bfloat16.")
    require(
        attn_dp_enabled(args) and args.attn_dp_size == args.tp_size,
        "FlashInfer MegaMOE is only supported with --attn-dp-size equal to --tp-size"
        if r.since(0, 5, 22)
        else "FlashInfer MegaMOE is only supported with dp_size == tp_size and --enable-dp-attention",
    )
    if args.moe_runner_backend == "auto":
        r.set("moe_runner_backend", "flashinfer_megamoe", "the backend's own runner", layer="engine-default")
    require(
        args.moe_runner_backend == "flashinfer_megamoe",
        "FlashInfer MegaMOE a2a backend requires --moe-runner-backend flashinfer_megamoe",
    )
    if not platform_of(r.hardware).is_sm100:
        raise invalid(
            "FlashInfer MegaMOE currently requires an SM100-family CUDA device for all supported quantization formats."
        )


def _environment(r: Resolution, *, w4a16: bool) -> None:
    combine = environ.read(r, _COMBINE).strip().lower()
    if w4a16 and combine != "bf16":
        raise invalid(f"FlashInfer MegaMOE NVFP4 W4A16 requires {_COMBINE}=bf16.")
    if combine not in ("bf16", "mxfp8", "nvfp4"):
        raise invalid(f"{_COMBINE} must be one of 'bf16', 'mxfp8', or 'nvfp4', got {combine!r}.")
    if combine != "bf16" and environ.read(r, "SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE"):
        raise invalid(f"{_COMBINE}={combine!r} is incompatible with SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE=1.")
