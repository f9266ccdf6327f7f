"""MegaMoE's buffer: it must hold the largest forward of one rank, prefill chunk and decode graph alike."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled, connector_type
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, unguarded
from engine.sglang.versioned import FIRST, at

_VARIABLE = "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK"
_NO_FALLBACK = frozenset(
    {
        "DeepseekV4ForCausalLM",
        "InternS2PreviewForConditionalGeneration",
        "MellumForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
    }
)


_DECODE_WORDS: tuple[tuple[Version, tuple[str, str]], ...] = (
    ((0, 5, 23), ("largest decode graph bucket", "--max-running-requests / ")),
    (FIRST, ("decode cuda graph max bs", "")),
)


@unguarded
def run(r: Resolution) -> None:
    """Models whose experts cannot run otherwise need the whole budget."""
    args = r.args
    if args.moe_a2a_backend != "megamoe" or connector_type(args.model_path) == "instance":
        return
    if args.encoder_only and r.since(0, 5, 23):
        return
    nvfp4 = args.quantization in ("modelopt_fp4", "minimax_m3_nvfp4") or "FP4" in str(
        r.model.hf_quant_config.get("quant_algo", "")
    )
    if r.model.arch in _NO_FALLBACK or nvfp4:
        _check(r)


def _check(r: Resolution) -> None:
    args, label = r.args, r.model.arch
    capacity = environ.read(r, _VARIABLE)
    if args.disaggregation_mode != "prefill":
        decode = _decode_tokens(r)
        if capacity < decode:
            product, limit = at(_DECODE_WORDS, r.release.version)
            raise invalid(
                f"{label} with MegaMoE requires {_VARIABLE} to cover the largest decode / verify forward on one rank. "
                f"Current values: {product} x tokens per request = {decode}, {_VARIABLE}={capacity}. "
                f"Raise the env var to at least {decode} or lower --cuda-graph-max-bs / {limit}"
                "--speculative-num-draft-tokens."
            )
    _prefill(r, label)


@unguarded
def deepseek_v4(r: Resolution) -> None:
    """Before 0.5.21 DeepSeek V4 alone, and its prefill alone.

    Source: SGLang 0.5.20, ``arg_groups/deepseek_v4_hook.py`` (``validate_deepseek_v4_mega_moe_token_budget``).
    """
    if r.args.moe_a2a_backend == "megamoe":
        _prefill(r, "DeepSeekV4", " Otherwise MegaMoE falls back to the fused MoE path at runtime.")


def _prefill(r: Resolution, label: str, otherwise: str = "") -> None:
    args = r.args
    if args.disaggregation_mode == "decode" or (args.pp_size > 1 and args.enable_dynamic_chunking):
        return
    chunk = args.chunked_prefill_size
    if chunk is None or chunk <= 0:
        raise invalid(
            f"{label} with MegaMoE requires chunked prefill to be enabled. Set --chunked-prefill-size to a positive "
            "value; --chunked-prefill-size=-1 is unsafe because MegaMoE's per-rank token requirement would not have a "
            "strict prefill-forward bound."
        )
    name, parts, step, share = _partition(r)
    if share <= 0:
        raise invalid(
            f"{label} with MegaMoE requires a positive effective per-rank chunked prefill size. Current values: "
            f"chunked_prefill_size={chunk}, token_partition={name}, token_partition_size={parts}."
        )
    needed, capacity = -(-share // step) * step, environ.read(r, _VARIABLE)
    if capacity < needed:
        raise invalid(
            f"{label} with MegaMoE requires {_VARIABLE} to cover each rank's effective prefill token budget. Current "
            f"values: chunked_prefill_size={chunk}, token_partition={name}, token_partition_size={parts}, "
            f"token_alignment={step}, required_per_rank={needed}, {_VARIABLE}={capacity}. Set {_VARIABLE} to at least "
            f"{needed}, or lower --chunked-prefill-size until the effective per-rank budget fits.{otherwise}"
        )


def _decode_tokens(r: Resolution) -> int:
    args = r.args
    largest = r.graph["decode"].max_bs or 0
    if args.max_running_requests is not None and r.since(0, 5, 23):
        step = args.tp_size // args.attn_dp_size
        largest = min(largest, -(-(args.max_running_requests // args.attn_dp_size) // step) * step)
    return largest * ((args.speculative_num_draft_tokens or 1) if args.speculative_algorithm else 1)


def _partition(r: Resolution) -> tuple[str, int, int, int]:
    """How a chunk is divided: by what, into how many parts, rounded up to what, tokens of one part."""
    args = r.args
    chunk = args.chunked_prefill_size
    if args.enable_prefill_cp:
        return "attn_cp_size", args.attn_cp_size, 1, -(-chunk // args.attn_cp_size)
    if attn_dp_enabled(args):
        step = max(args.tp_size // args.attn_dp_size // args.attn_cp_size, 1)
        name = "attn_dp_size" if r.since(0, 5, 22) else "dp_size"
        return name, args.attn_dp_size, step, chunk // args.attn_dp_size
    return "none", 1, max(args.tp_size // args.attn_cp_size, 1), chunk
