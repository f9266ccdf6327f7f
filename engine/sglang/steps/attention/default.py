"""The attention backend where nobody names one: the engine's fastest for the model's attention on this GPU.

Source: SGLang 0.5.23, ``arg_groups/model_override_base.py`` (``get_default_attn_backend``) and
``arg_groups/overrides.py`` (``_attention_backend_default``).
"""

from __future__ import annotations

from typing import Any

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution


def unset(args: Any) -> bool:
    """Whether none of the three attention backends is set."""
    return (
        args.attention_backend is None
        and args.prefill_attention_backend is None
        and args.decode_attention_backend is None
    )


def no_speculation_or_top_one(args: Any) -> bool:
    """Whether drafts, if any, form a chain over pages of one token."""
    return args.speculative_eagle_topk is None or (args.speculative_eagle_topk == 1 and args.page_size in (1, None))


def _one_branch(r: Resolution, algorithm: str) -> bool:
    return r.since(0, 5, 23) and algorithm.upper() == "DFLASH"


def default_backend(r: Resolution) -> str:
    """The engine's choice for this model on this GPU."""
    args, model, platform = r.args, r.model, platform_of(r.hardware)
    if "WhisperForConditionalGeneration" in model.architectures:
        return "flashinfer"
    if model.use_mla:
        return "fa3" if platform.is_sm90 else "flashinfer" if platform.is_sm100 else "triton"
    if platform.is_sm90 and no_speculation_or_top_one(args):
        return "fa3"
    algorithm = args.speculative_algorithm
    if (
        platform.is_sm100
        and no_speculation_or_top_one(args)
        and (algorithm is None or args.speculative_eagle_topk is not None or _one_branch(r, str(algorithm)))
    ):
        return "fa4" if model.has_asymmetric_kv and r.since(0, 5, 17) else "trtllm_mha"
    return "triton" if model.has_attention_sinks else "flashinfer"


def run(r: Resolution) -> None:
    """Two equal split backends become the common one; an absent common one is filled in."""
    args = r.args
    prefill = args.prefill_attention_backend
    if prefill is not None and prefill == args.decode_attention_backend:
        r.set("attention_backend", prefill, "prefill and decode name the same backend")
    elif args.attention_backend is None:
        r.set(
            "attention_backend",
            default_backend(r),
            "the engine's default for this model's attention on this GPU",
            layer="engine-default",
        )
