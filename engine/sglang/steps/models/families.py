"""Backends that a family accepts, checked after its override.

Source: SGLang 0.5.23, ``arg_groups/model_hook.py`` (the branches of ``handle_model_specific_adjustments``).
"""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang import environ
from engine.sglang.derived import attention_backends, num_dp_ranks
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.model_overrides import exaone, gemma4, llama4
from engine.sglang.versioned import FIRST, at

_GPT_OSS = ["triton", "trtllm_mha", "fa3", "fa4", "ascend", "intel_amx", "intel_xpu", "aiter"]
_LLAMA4 = {"fa3", "aiter", "triton", "ascend", "trtllm_mha", "intel_xpu"}
_GEMMA4: tuple[tuple[Version, tuple[str, ...]], ...] = (
    ((0, 5, 22), ("trtllm_mha", "triton", "fa4", "ascend", "intel_xpu", "intel_amx", "aiter")),
    ((0, 5, 20), ("trtllm_mha", "triton", "ascend", "intel_xpu", "intel_amx", "aiter")),
    ((0, 5, 18), ("trtllm_mha", "triton", "ascend", "intel_xpu", "intel_amx")),
    (FIRST, ("trtllm_mha", "triton", "ascend", "intel_xpu")),
)
_UNIFIED_TREE = "SGLANG_ENABLE_UNIFIED_RADIX_TREE"
_EXAONE = ["fa3", "triton", "trtllm_mha"]


def run(r: Resolution) -> None:
    """Refuse a backend that the model's family does not run on."""
    check = _CHECKS.get(r.model.arch)
    if check is not None:
        check(r)


def _gpt_oss(r: Resolution) -> None:
    prefill, decode = attention_backends(r.args)
    if prefill not in _GPT_OSS or decode not in _GPT_OSS:
        raise Refusal(
            "AssertionError",
            f"GptOssForCausalLM requires one of {_GPT_OSS} attention backend, but got the following backends\n"
            f"- Prefill: {prefill}\n- Decode: {decode}\n",
        )
    if r.args.moe_runner_backend == "triton_kernel" and r.args.ep_size != 1:
        raise Refusal("AssertionError", "Triton kernel MoE is only supported when ep_size == 1")


def _mimo(r: Resolution) -> None:
    args = r.args
    if r.model.arch == "MiMoV2ForCausalLM" and not args.encoder_only:
        expected = _fused_qkv_tp(r)
        effective = args.tp_size // args.attn_dp_size // args.attn_cp_size
        whole = expected is None or (expected % effective == 0 if r.since(0, 5, 17) else expected == effective)
        if expected is not None and not whole:
            raise _mimo_width(r, expected, effective)
    if args.enable_hierarchical_cache and not r.since(0, 5, 19) and not environ.read(r, _UNIFIED_TREE):
        raise Refusal(
            "ValueError",
            f"Hierarchical cache for MiMoV2 requires the unified radix tree. Set {_UNIFIED_TREE}=1 to enable "
            "--enable-hierarchical-cache for this model.",
        )


def _mimo_width(r: Resolution, expected: int, effective: int) -> Refusal:
    args = r.args
    if r.since(0, 5, 22):
        widths, options = f"attn_dp_size={args.attn_dp_size}", "--attn-dp-size"
    else:
        widths = f"dp_size={num_dp_ranks(args)}, enable_dp_attention={args.enable_dp_attention}"
        options = "--dp, --enable-dp-attention"
    return Refusal(
        "ValueError",
        f"MiMoV2ForCausalLM requires effective attention TP size {expected} because its fused qkv_proj weights are "
        f"TP={expected}-interleaved; got {effective} (tp_size={args.tp_size}, {widths}, "
        f"attn_cp_size={args.attn_cp_size}). Set --tp, {options}, and --attention-context-parallel-size so the "
        f"effective attention TP size is {expected}.",
    )


def _fused_qkv_tp(r: Resolution) -> int | None:
    hf = r.model.hf
    layout = hf.get("attention_projection_layout")
    if layout is None or (layout == "split" and r.since(0, 5, 22)):
        return None
    if layout != "fused_qkv":
        split = ", 'split'" if r.since(0, 5, 22) else ""
        raise Refusal(
            "ValueError",
            f"MiMoV2 hf_config has unsupported attention_projection_layout={layout!r}; expected 'fused_qkv'{split} "
            "or unset.",
        )
    heads = hf.get("num_key_value_heads")
    if heads is None and hf.get("text_config") is not None:
        heads = hf.get("text_config").get("num_key_value_heads")
    if heads is None:
        raise Refusal(
            "ValueError",
            "MiMoV2 hf_config has attention_projection_layout='fused_qkv' but num_key_value_heads is missing; this "
            "value is required to derive the fused qkv_proj TP size.",
        )
    return int(heads)


def _llama4(r: Resolution) -> None:
    backend = r.args.attention_backend
    if r.args.device != "cpu" and backend not in _LLAMA4:
        raise Refusal(
            "AssertionError",
            f"fa3, aiter, triton, ascend, trtllm_mha or intel_xpu is required for Llama4 model but got {backend}",
        )


def _gemma4(r: Resolution) -> None:
    prefill, decode = attention_backends(r.args)
    accepted = at(_GEMMA4, r.release.version)
    named = accepted if r.since(0, 5, 18) else tuple(name for name in accepted if name != "ascend")
    if prefill not in accepted or decode not in accepted:
        raise Refusal(
            "AssertionError",
            f"Gemma4 only supports {', '.join(named[:-1])}, or {named[-1]} attention backend, "
            f"got prefill={prefill}, decode={decode}",
        )


def _exaone(r: Resolution) -> None:
    backend = r.args.attention_backend
    if r.model.arch in exaone.EXAONE_SINCE_0_5_22 and not r.since(0, 5, 22):
        return
    if r.model.hf.require("sliding_window_pattern") is not None and backend not in _EXAONE:
        raise Refusal(
            "AssertionError",
            f"One of the attention backends in {_EXAONE} is required for {r.model.arch}, but got {backend}",
        )


def _olmo2(r: Resolution) -> None:
    if r.args.attention_backend == "flashinfer":
        raise Refusal("AssertionError", "FlashInfer backend can significantly degrade the performance of Olmo3 models.")


def _nemotron(r: Resolution) -> None:
    if not r.since(0, 5, 19) and r.args.attention_backend == "triton":
        raise Refusal(
            "AssertionError",
            "NemotronHForCausalLM does not support triton attention backend,as the first layer might not be an "
            "attention layer",
        )


def _lfm2(r: Resolution) -> None:
    if r.model.arch == "Lfm2MoeForCausalLM" and not r.since(0, 5, 17):
        return
    if r.args.attention_backend == "triton":
        raise Refusal(
            "AssertionError",
            f"{r.model.arch} does not support triton attention backend, as the first layer might not be an attention "
            "layer",
        )


_CHECKS: dict[str, Callable[[Resolution], None]] = {
    "GptOssForCausalLM": _gpt_oss,
    "MiMoV2ForCausalLM": _mimo,
    "MiMoV2FlashForCausalLM": _mimo,
    **dict.fromkeys(llama4.ARCHITECTURES, _llama4),
    **dict.fromkeys(gemma4.SERVING, _gemma4),
    **dict.fromkeys((*exaone.EXAONE, *exaone.EXAONE_SINCE_0_5_22), _exaone),
    "Olmo2ForCausalLM": _olmo2,
    "NemotronHForCausalLM": _nemotron,
    "NemotronHPuzzleForCausalLM": _nemotron,
    "Lfm2ForCausalLM": _lfm2,
    "Lfm2MoeForCausalLM": _lfm2,
}
