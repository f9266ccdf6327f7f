"""DeepSeek V3 and its kin: sparse attention (DSA) with its pages, MLA on Blackwell, prefill context parallelism."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values

_HY_V4 = ("HYV4ForCausalLM", "HYV4ForCausalLMNextN")
_DSA_PAGE = 64


def attn_dp_of_context_parallel(r: Resolution, layout: str) -> int:
    """How wide attention data parallelism is under a DeepSeek context-parallel layout.

    Raises:
        Refusal: replicas and attention data parallelism at once.
    """
    args = r.args
    if args.attn_dp_size > 1 and args.dp_size > 1:
        raise Refusal(
            "AssertionError",
            f"--dp-size {args.dp_size} with --attn-dp-size {args.attn_dp_size}: data-parallel replicas combined with "
            "attention data parallelism are not supported.",
        )
    if args.dp_size > 1 and r.since(0, 5, 22):
        r.warn(
            f"WARNING: --dp-size {args.dp_size} under {layout} runs {args.dp_size} attention data-parallel groups. "
            "This is deprecated and will be rejected after 2026-12-31; use --attn-dp-size "
            f"{args.dp_size} instead."
        )
    return int(args.attn_dp_size * args.dp_size)


def _hy_v4(r: Resolution) -> None:
    args, arch = r.args, r.model.arch
    if args.enable_prefill_cp:
        raise Refusal(
            "ValueError",
            "--enable-prefill-cp is not supported for HYV4 because its attention path does not implement DSA "
            f"context-parallel metadata and sharding. Got architecture={arch!r} and "
            f"enable_prefill_cp={args.enable_prefill_cp!r}.",
        )
    if args.dcp_size > 1:
        raise Refusal(
            "ValueError",
            "--dcp-size > 1 is not supported for HYV4 because decode context parallelism gathers query heads across "
            "DCP ranks but does not provide single-owner semantics for learnable attention sinks. "
            f"Got architecture={arch!r} and dcp_size={args.dcp_size!r}.",
        )


def _decode_context_parallel(r: Resolution) -> Values:
    args = r.args
    if args.dcp_size <= 1 or not r.since(0, 5, 22):
        return {}
    if args.enable_hisparse or args.enable_hierarchical_cache:
        raise Refusal("ValueError", "DSA DCP does not support HiSparse or HiCache.")
    if args.disaggregation_mode != "null":
        raise Refusal("ValueError", "DSA DCP does not support PD disaggregation.")
    if args.speculative_eagle_topk not in (None, 1):
        raise Refusal("ValueError", "DSA DCP requires --speculative-eagle-topk 1.")
    out: Values = {
        name: "trtllm" for name in ("dsa_prefill_backend", "dsa_decode_backend") if getattr(args, name) is None
    }
    if args.dcp_replicate_q_proj is None and args.dcp_comm_backend in ("a2a", "fi_a2a"):
        out["dcp_replicate_q_proj"] = True
    return out


def _dsa(r: Resolution) -> Values:
    args = r.args
    out = _decode_context_parallel(r)
    if unset(args):
        out["attention_backend"] = "dsa"
    if args.enable_prefill_cp:
        r.warn(
            "WARNING: Context parallel feature is still under experiment. It has only been verified on Hopper platform."
        )
        attn_dp = attn_dp_of_context_parallel(r, "DSA context parallelism")
        out |= {"attn_dp_size": attn_dp, "dp_size": 1}
        if not r.since(0, 5, 22):
            out |= {"enable_dp_attention": True, "moe_dense_tp_size": 1}
        if args.cp_strategy == "zigzag":
            out |= {"moe_dense_tp_size": 1, "moe_a2a_backend": "deepep", "ep_size": args.tp_size}
        elif attn_dp != 1 and not r.since(0, 5, 22):
            raise Refusal("AssertionError", "interleave DSA CP does not support DP attention.")
        if args.tp_size > 8:
            raise Refusal(
                "AssertionError",
                "Context parallel only supports single machine (tp_size <= 8). Cross-machine CP has precision issues.",
            )
        keep = args.cp_strategy == "interleave" and args.attn_cp_size > 1 and r.since(0, 5, 22)
        out["attn_cp_size"] = args.attn_cp_size if keep else args.tp_size // attn_dp
    pool = r.model.hf.get("index_kpool", 1) if r.since(0, 5, 22) else 1
    if pool > 1 and args.dcp_size > 1:
        raise Refusal(
            "ValueError",
            f"--dcp-size > 1 is not supported for DSA with index_kpool={pool}: a pooled index key spans positions "
            "owned by different DCP ranks.",
        )
    out["page_size"] = _DSA_PAGE * pool
    r.warn(f"WARNING: Setting page size to {out['page_size']} for DeepSeek DSA.")
    return out


def _mla_context_parallel(r: Resolution) -> Values:
    args = r.args
    r.warn("WARNING: MLA prefill context parallel is still experimental. Verified on Hopper with the fa3 backend.")
    attn_dp = attn_dp_of_context_parallel(r, "MLA context parallelism")
    return {
        **({} if r.since(0, 5, 22) else {"enable_dp_attention": True}),
        "attn_dp_size": attn_dp,
        "dp_size": 1,
        "moe_dense_tp_size": 1,
        "moe_a2a_backend": "deepep",
        "ep_size": args.tp_size,
        "attn_cp_size": args.tp_size // attn_dp,
    }


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    if r.model.arch in _HY_V4:
        _hy_v4(r)
    if r.model.is_deepseek_dsa:
        return _dsa(r)
    out: Values = {}
    if platform_of(r.hardware).is_sm100 and unset(r.args):
        out["attention_backend"] = "trtllm_mla"
    if r.args.enable_prefill_cp and r.model.use_mla:
        out |= _mla_context_parallel(r)
    return out


OVERRIDES = (
    Override(
        family="DeepSeek",
        look=look,
        architectures=(
            "DeepseekV3ForCausalLM",
            "DeepseekV32ForCausalLM",
            "KimiK25ForConditionalGeneration",
            "MistralLarge3ForCausalLM",
            "PixtralForConditionalGeneration",
            "GlmMoeDsaForCausalLM",
            "Dots3NoteForCausalLM",
        ),
    ),
    Override(
        family="LongCat-Flash",
        look=look,
        architectures=("LongcatFlashForCausalLM", "LongcatFlashForCausalLMNextN"),
        since=(0, 5, 16),
    ),
    Override(
        family="GLM-5-Next and HY-V4",
        look=look,
        architectures=("Glm5NextForConditionalGeneration", *_HY_V4),
        since=(0, 5, 20),
    ),
)
