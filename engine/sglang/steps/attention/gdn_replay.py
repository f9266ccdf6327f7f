"""The replay of drafts over gated delta nets as 0.5.16 had it: a ring with rules of its own.

Source: SGLang 0.5.16, ``server_args.py`` (``_handle_linear_attn_backend``, ``_validate_gdn_replayssm_spec_ring``);
0.5.17 replaced it by ``--enable-linear-replayssm-spec``.
"""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.mamba import extra_buffer
from engine.sglang.steps.moe.graph_tokens import most_draft_tokens
from engine.sglang.steps.refusals import invalid

_FLAG = "--enable-gdn-replayssm-spec"


def asked_for(r: Resolution) -> bool:
    """Whether the release has the option and it is set."""
    return bool(r.args.__dict__.get("enable_gdn_replayssm_spec"))


def run(r: Resolution) -> None:
    """What the ring excludes, and the type of the state that it folds into."""
    if not asked_for(r):
        return
    args = r.args
    decode = args.linear_attn_decode_backend or args.linear_attn_backend
    length = args.linear_replayssm_cache_len
    if args.speculative_eagle_topk not in (None, 1):
        raise invalid(
            f"{_FLAG} requires a linear draft chain (--speculative-eagle-topk in {{None, 1}}); the chunked verify "
            "kernel uses a strictly-lower causal mask and is invalid for EAGLE tree verify. Got "
            f"--speculative-eagle-topk={args.speculative_eagle_topk!r}."
        )
    if decode != "triton":
        raise invalid(
            f"{_FLAG} requires the Triton linear-attn decode backend, got --linear-attn-decode-backend={decode!r}."
        )
    if extra_buffer(args):
        raise invalid(
            f"{_FLAG} is not yet compatible with mamba extra_buffer (radix prefix caching); use --disable-radix-cache "
            "or --mamba-radix-cache-strategy no_buffer."
        )
    if args.disaggregation_mode != "null":
        raise invalid(
            f"{_FLAG} is not supported under PD disaggregation yet (follow-up). Got "
            f"--disaggregation-mode={args.disaggregation_mode!r}."
        )
    if length < 1:
        raise invalid(f"--linear-replayssm-cache-len must be >= 1, got {length}.")
    if args.enable_linear_replayssm:
        raise invalid(
            f"{_FLAG} and --enable-linear-replayssm are mutually exclusive: they share the ring storage but drive it "
            "with incompatible cursor protocols (per-decode-forward vs per-verify-commit advance)."
        )
    if length & (length - 1) != 0:
        raise invalid(
            f"--linear-replayssm-cache-len must be a power of two for the circular spec-verify ring, got {length}."
        )
    if args.mamba_ssm_dtype is None:
        r.set("mamba_ssm_dtype", "float32", f"{_FLAG} folds into a state of this type")
    elif args.mamba_ssm_dtype != "float32":
        raise invalid(
            f"{_FLAG} requires --mamba-ssm-dtype float32, got {args.mamba_ssm_dtype!r}. The closed-loop exact fold "
            "keeps the committed state bit-identical to the recurrent baseline, which is only meaningful against the "
            "fp32 checkpoint; a 16-bit checkpoint would re-quantize it every flush."
        )


def ring(r: Resolution) -> None:
    """Once the drafts are known: the ring holds two windows of them."""
    most = most_draft_tokens(r)
    if not asked_for(r) or most is None:
        return
    length = r.args.linear_replayssm_cache_len
    if length < 2 * most:
        raise invalid(
            "--linear-replayssm-cache-len must be >= 2 * the maximum speculative draft-token count for the spec-verify "
            f"ring (early-flush margin), got {length} < {2 * most}."
        )
