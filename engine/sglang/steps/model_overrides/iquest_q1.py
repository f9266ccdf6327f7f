"""IQuest Q1: FlashAttention 3 only, serial drafts, no context or pipeline parallelism."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def _checks(r: Resolution) -> None:
    args = r.args
    if any(
        backend not in (None, "fa3")
        for backend in (args.attention_backend, args.prefill_attention_backend, args.decode_attention_backend)
    ):
        raise Refusal(
            "ValueError",
            "IQuestQ1 applies its attention sink from the softmax LSE and requires FA3 attention for both prefill and "
            "decode.",
        )
    if args.speculative_algorithm is not None:
        if args.speculative_algorithm.upper() not in ("EAGLE", "NEXTN"):
            raise Refusal("ValueError", "IQuest Q1 MTP requires serial EAGLE or NEXTN drafting.")
        if args.speculative_draft_attention_backend not in (None, "fa3"):
            raise Refusal("ValueError", "IQuestQ1 requires FA3 attention for the MTP draft.")
    for refused, message in (
        (
            args.attn_cp_size > 1 or args.dcp_size > 1 or args.enable_prefill_cp,
            "IQuestQ1 does not support context parallelism.",
        ),
        (
            args.speculative_eagle_topk is not None and args.speculative_eagle_topk > 1,
            "IQuestQ1 speculative decoding requires --speculative-eagle-topk 1.",
        ),
        (args.enable_multi_layer_eagle, "IQuest Q1 MTP drafting does not support multi-layer EAGLE."),
        (attn_dp_enabled(args), "IQuest Q1 does not support DP attention."),
        (args.pp_size > 1, "IQuest Q1 does not support pipeline parallelism."),
    ):
        if refused:
            raise Refusal("ValueError", message)


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    _checks(r)
    args = r.args
    if unset(args):
        return {"attention_backend": "fa3"}
    if args.attention_backend is not None:
        return {}
    return {
        name: "fa3" for name in ("prefill_attention_backend", "decode_attention_backend") if getattr(args, name) is None
    }


OVERRIDES = (
    Override(family="IQuest Q1", look=look, architectures=("IQuestQ1ForCausalLM", "IQuestQ1MTP"), since=(0, 5, 21)),
)
