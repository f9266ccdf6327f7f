"""Nemotron-H: its quantization by name, MoE runners by format and GPU, and backends on Blackwell."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values

_MODELOPT = ("modelopt", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed")
_BY_ALGORITHM = {"MIXED_PRECISION": "modelopt_mixed", "NVFP4": "modelopt_fp4"}
_OMNI = "NemotronH_Omni_Reasoning_V3"


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, model = r.args, r.model
    out: Values = {}
    modelopt = model.quantization in _MODELOPT
    quantization = args.quantization
    if modelopt:
        language = model.text if model.arch == _OMNI else model.hf
        if language.require("mlp_hidden_act") != "relu2":
            raise Refusal("AssertionError", "")
        quantization = model.quantization
        if quantization == "modelopt":
            algorithm = (model.hf.get("quantization_config") or {}).get("quant_algo")
            quantization = _BY_ALGORITHM.get(str(algorithm), "modelopt_fp8")
        out["quantization"] = quantization
    moved = args.enable_eplb or args.ep_num_redundant_experts > 0 or args.init_expert_location != "trivial"
    remap = moved and r.since(0, 5, 23)
    if remap:
        _check_remap(r)
    out |= _runner(r, modelopt, quantization, bool(remap))
    out |= _attention(r)
    return out


def _check_remap(r: Resolution) -> None:
    args, runner = r.args, r.args.moe_runner_backend
    if runner == "flashinfer_trtllm":
        raise Refusal(
            "ValueError",
            "flashinfer_trtllm routes inside the kernel and does not support EPLB or redundant experts on Nemotron-H; "
            "use --moe-runner-backend flashinfer_trtllm_routed.",
        )
    if args.enable_eplb and runner == "flashinfer_cutedsl" and args.moe_a2a_backend == "none":
        raise Refusal(
            "ValueError",
            "flashinfer_cutedsl without an a2a backend does not migrate its expert scales on EPLB rebalance; use "
            "--moe-runner-backend flashinfer_trtllm_routed or set --moe-a2a-backend.",
        )
    if r.model.arch == "NemotronHPuzzleForCausalLM":
        blocks = r.model.hf.get("block_configs") or ()
        counts = {b.get("n_routed_experts") for b in blocks if b.get("block_type") == "moe"}
        if len(counts) > 1:
            raise Refusal(
                "ValueError",
                "EPLB and redundant experts need the same routed expert count on every MoE layer, got "
                f"{sorted(counts)}.",
            )


def _w4a16(r: Resolution) -> bool:
    layers = (r.model.hf.get("quantization_config") or {}).get("quantized_layers", {})
    return any(info.get("quant_algo") == "W4A16_NVFP4" and ".experts." in name for name, info in layers.items())


def _runner(r: Resolution, modelopt: bool, quantization: str | None, remap: bool) -> Values:
    args, platform, own = r.args, platform_of(r.hardware), r.model.quantization
    runner, a2a = args.moe_runner_backend, args.moe_a2a_backend
    if modelopt and quantization == "modelopt_mixed" and r.since(0, 5, 18) and _w4a16(r):
        if a2a != "none":
            raise Refusal("ValueError", "W4A16_NVFP4 MoE layers require --moe-a2a-backend=none.")
        if runner not in ("auto", "marlin"):
            raise Refusal("ValueError", "W4A16_NVFP4 MoE layers require --moe-runner-backend=marlin.")
        return {"moe_runner_backend": "marlin"} if runner == "auto" else {}
    if runner != "auto":
        return {}
    if remap and platform.is_sm100 and a2a == "none":
        return {"moe_runner_backend": "flashinfer_trtllm_routed"}
    if not (modelopt or own is None):
        return {}
    if platform.is_sm100 and a2a == "none":
        return {"moe_runner_backend": "flashinfer_trtllm"}
    fp4 = own in ("modelopt_fp4", "modelopt_mixed") or quantization == "modelopt_fp4"
    if fp4 and 80 <= platform.sm < 100:
        return {"moe_runner_backend": "marlin"}
    return {"moe_runner_backend": "flashinfer_cutlass"}


def _attention(r: Resolution) -> Values:
    args, platform = r.args, platform_of(r.hardware)
    if not r.since(0, 5, 19):
        return {"attention_backend": "flashinfer"} if platform.is_sm100 and args.attention_backend is None else {}
    if not platform.is_blackwell or not unset(args):
        return {}
    if args.speculative_algorithm is None:
        return {"attention_backend": "trtllm_mha"} if platform.is_sm100 else {}
    algorithm = args.speculative_algorithm.upper()
    free_draft = args.speculative_draft_attention_backend is None
    if platform.is_sm100 and args.speculative_eagle_topk in (None, 1):
        out: Values = {"attention_backend": "trtllm_mha"}
        if args.page_size is None:
            out["page_size"] = 64
        if args.mamba_radix_cache_strategy == "auto":
            out["mamba_radix_cache_strategy"] = "extra_buffer"
        if free_draft and algorithm in ("EAGLE", "NEXTN", "DSPARK"):
            out["speculative_draft_attention_backend"] = "trtllm_mha"
        return out
    out = {"attention_backend": "triton"}
    if free_draft and algorithm in ("EAGLE", "NEXTN", "DFLASH", "DSPARK"):
        out["speculative_draft_attention_backend"] = "flashinfer"
    return out


OVERRIDES = (
    Override(
        family="Nemotron-H",
        look=look,
        architectures=("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM"),
    ),
    Override(family="Nemotron-H Omni", look=look, architectures=(_OMNI,), since=(0, 5, 20)),
)
