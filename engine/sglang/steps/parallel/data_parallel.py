"""Attention data parallelism: each rank prefills its share of a chunk, so chunk and prefill sizes shrink."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled, num_dp_ranks
from engine.sglang.ladders import prefill_sizes
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.refusals import invalid, require, unguarded
from engine.sglang.versioned import FIRST, at

_HEAD_NEEDS_ATTENTION_DP: tuple[tuple[Version, str], ...] = (
    ((0, 5, 22), "--enable-dp-lm-head requires attention DP (--attn-dp-size)."),
    (FIRST, "Please enable dp attention when setting enable_dp_lm_head. "),
)
_ALL_TO_ALL_NEEDS_ATTENTION_DP: tuple[tuple[Version, str], ...] = (
    ((0, 5, 22), "--enable-tp-lm-head-all-to-all requires attention DP (--attn-dp-size)."),
    (FIRST, "Please enable dp attention when setting enable_tp_lm_head_all_to_all."),
)


@unguarded
def run(r: Resolution) -> None:
    """Widths, then the chunk of one rank, then the language-model head."""
    args = r.args
    if args.attn_dp_size < 1 and r.since(0, 5, 22):
        raise invalid(f"--attn-dp-size must be positive (got {args.attn_dp_size}).")
    if args.attn_dp_size > 1 and args.dp_size > 1:
        raise invalid(
            f"--dp-size {args.dp_size} with --attn-dp-size {args.attn_dp_size}: data-parallel replicas combined with "
            "attention data parallelism are not supported."
        )
    if num_dp_ranks(args) == 1 and args.ep_join_mode != "scale":
        r.set("enable_dp_attention", False, "there is one data-parallel rank")
        r.set("enable_dp_lm_head", False, "there is one data-parallel rank")
    if args.mm_enable_dp_encoder and args.tp_size == 1:
        r.warn(
            "WARNING: --mm-enable-dp-encoder is enabled with TP=1, so the encoder has no data-parallel work to "
            "distribute. Disable it unless you need to validate this configuration."
        )
    if attn_dp_enabled(args):
        _split(r)
    _head(r)


def _split(r: Resolution) -> None:
    args = r.args
    why = f"attention runs in {args.attn_dp_size} data-parallel groups"
    r.set("schedule_conservativeness", args.schedule_conservativeness * 0.3, why)
    if environ.read(r, "SGLANG_RUST_SERVER"):
        r.set("enable_dp_attention_local_control_broadcast", True, why)
    require(args.tp_size % args.attn_dp_size == 0)
    whole = args.chunked_prefill_size
    chunk = whole // args.attn_dp_size
    r.set("chunked_prefill_size", chunk, f"{why}: each prefills its share of a chunk")
    if not r.since(0, 5, 16):
        r.warn(
            f"WARNING: DP attention is enabled. The chunked prefill size is adjusted to {chunk} to avoid MoE kernel "
            "issues. "
        )
        return
    r.warn(
        f"WARNING: DP attention is enabled. chunked prefill size is adjusted from {whole} to "
        f"{args.chunked_prefill_size}."
    )
    state = r.graph["prefill"]
    if (
        state.backend == "disabled"
        or state.max_bs is None
        or state.max_bs <= chunk
        or ("prefill", "max_bs") in r.locked
    ):
        return
    why = "no larger than one rank's chunk"
    r.set_graph("prefill", "max_bs", chunk, why)
    if ("prefill", "bs") not in r.locked:
        ladder = r.release.ladders["prefill"]
        r.set_graph("prefill", "bs", prefill_sizes(ladder, chunk), why)


def _head(r: Resolution) -> None:
    args = r.args
    if args.enable_tp_lm_head_all_to_all is None:
        pure = (
            args.disaggregation_mode == "decode"
            and args.attn_dp_size > 1
            and args.tp_size == args.attn_dp_size
            and args.attn_cp_size == 1
            and not args.enable_dp_lm_head
        )
        r.fill("enable_tp_lm_head_all_to_all", pure)
    name = "attn_dp_size" if r.since(0, 5, 22) else "dp_size"
    if args.enable_dp_lm_head:
        require(attn_dp_enabled(args), at(_HEAD_NEEDS_ATTENTION_DP, r.release.version))
    if not args.enable_tp_lm_head_all_to_all:
        return
    require(attn_dp_enabled(args), at(_ALL_TO_ALL_NEEDS_ATTENTION_DP, r.release.version))
    require(
        not args.enable_dp_lm_head,
        "--enable-tp-lm-head-all-to-all uses a TP-sharded LM head and is incompatible with --enable-dp-lm-head.",
    )
    require(
        args.tp_size == args.attn_dp_size,
        f"--enable-tp-lm-head-all-to-all currently requires tp_size == {name}, got "
        f"tp_size={args.tp_size}, {name}={args.attn_dp_size}.",
    )
    require(
        args.attn_cp_size == 1,
        f"--enable-tp-lm-head-all-to-all currently requires attn_cp_size == 1, got {args.attn_cp_size}.",
    )
