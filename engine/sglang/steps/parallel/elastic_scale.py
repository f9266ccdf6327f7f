"""An elastic deployment that may grow while it runs: the layout that a joining group can be added to."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.refusals import require
from engine.sglang.versioned import FIRST, at

_MEMBERSHIP: tuple[tuple[Version, str], ...] = (
    ((0, 5, 23), "physical EP membership must coincide with the launch-time TP span"),
    (FIRST, "EP, TP and the attention DP group must all coincide with WORLD"),
)


def run(r: Resolution) -> None:
    """Topology, sizes, and graphs that can be captured again: decode full or none, prefill none."""
    args = r.args
    newest = r.since(0, 5, 23)
    attention_tp = _topology(r) if newest else 1
    if attention_tp > 1:
        require(
            args.moe_dense_tp_size == 1,
            "Elastic EP scale-up with attention TP greater than one requires --moe-dense-tp-size 1 "
            f"(got moe_dense_tp_size={args.moe_dense_tp_size}).",
        )
    require(args.elastic_ep_scale_timeout > 0, "--elastic-ep-scale-timeout must be greater than zero.")
    require(
        args.tokenizer_worker_num == 1,
        "Elastic EP runtime scale-up currently requires --tokenizer-worker-num 1.",
    )
    require(not args.use_ray, "Elastic EP runtime scale-up does not support --use-ray.")
    require(
        not args.enable_elastic_expert_backup,
        "Elastic EP runtime scale-up does not support --enable-elastic-expert-backup.",
    )
    r.set("enable_dp_attention_local_control_broadcast", True, "the deployment may grow")
    _sizes(r)
    require(
        args.load_balance_method == "round_robin",
        "Elastic EP scale-up requires --load-balance-method round_robin; load-aware methods require global-rank load "
        f"snapshots after scale (got {args.load_balance_method}).",
    )
    require(
        args.elastic_ep_backend == "mooncake",
        "Elastic EP runtime scale-up requires --elastic-ep-backend mooncake "
        f"(got elastic_ep_backend={args.elastic_ep_backend}).",
    )
    require(
        args.pp_size == 1,
        f"Elastic EP scale-up requires --pp-size 1 (got pp_size={args.pp_size}); WORLD must not span PP stages.",
    )
    require(
        not newest or attention_tp % args.dcp_size == 0,
        "Elastic EP scale-up requires --dcp-size to divide the fixed attention TP width "
        f"(got dcp_size={args.dcp_size}, attn_tp_size={attention_tp}).",
    )
    _graphs(r)
    _layout(r)


def _topology(r: Resolution) -> int:
    args = r.args
    divisor = args.attn_dp_size * args.attn_cp_size
    if args.tp_size <= 0 or args.attn_dp_size <= 0 or args.attn_cp_size <= 0 or args.tp_size % divisor:
        raise Refusal(
            "AssertionError",
            f"Invalid attention topology: tp_size={args.tp_size}, attn_dp_size={args.attn_dp_size}, "
            f"attn_cp_size={args.attn_cp_size}.",
        )
    attention_tp = int(args.tp_size // args.attn_dp_size // args.attn_cp_size)
    replica = attention_tp * args.attn_cp_size
    sizes = [args.max_ep_size, args.elastic_ep_initial_size or args.tp_size]
    if args.ep_join_mode == "scale":
        sizes.append(args.ep_join_rank_offset)
    for size in sizes:
        require(
            size > 0 and size % replica == 0,
            f"EP size {size} must be divisible by attention replica size {replica}.",
        )
    return attention_tp


def _sizes(r: Resolution) -> None:
    args = r.args
    if args.ep_join_mode == "scale":
        initial, current = args.elastic_ep_initial_size, args.ep_join_rank_offset
        require(
            initial is not None,
            "Elastic EP scale joiners require --elastic-ep-initial-size set to the primary deployment's launch-time EP "
            "size.",
        )
        require(
            initial <= current,
            f"--elastic-ep-initial-size cannot exceed the current EP size (initial={initial}, current={current}).",
        )
        target = current + args.tp_size
        require(
            target <= args.max_ep_size,
            f"Elastic EP joining group exceeds --max-ep-size (join_target={target}, max_ep_size={args.max_ep_size}).",
        )
        if args.tp_size == 1:
            require(
                args.moe_dense_tp_size == 1,
                "A single-rank Elastic EP joining group requires --moe-dense-tp-size 1.",
            )
    else:
        if args.elastic_ep_initial_size is None:
            r.set("elastic_ep_initial_size", args.tp_size, "nothing given", layer="engine-default")
        require(
            args.elastic_ep_initial_size == args.tp_size,
            f"The primary --elastic-ep-initial-size must equal its launch-time TP size ({args.tp_size}).",
        )
    require(args.elastic_ep_initial_size > 0)


def _graphs(r: Resolution) -> None:
    args = r.args
    decode = r.graph["decode"].backend
    if not r.since(0, 5, 21):
        require(
            decode == r.graph["prefill"].backend == "disabled",
            "Elastic EP runtime scale-up requires decode and prefill CUDA graphs to be disabled.",
        )
        return
    require(
        decode in ("disabled", "full"),
        f"Elastic EP runtime scale-up supports decode CUDA graph backend 'full' or 'disabled' (got {decode!r}).",
    )
    require(
        r.graph["prefill"].backend == "disabled",
        "Elastic EP runtime scale-up requires prefill CUDA graph to be disabled.",
    )
    if decode != "full":
        return
    require(args.device == "cuda", f"Elastic EP CUDA graph recapture requires CUDA (got device={args.device!r}).")
    again = "Elastic EP CUDA graph recapture does not support"
    require(args.speculative_algorithm is None, f"{again} speculative decoding.")
    require(not args.is_embedding, f"{again} embedding models.")
    require(args.dllm_algorithm is None, f"{again} diffusion models.")
    require(not args.encoder_only, f"{again} encoder-only models.")
    require(not args.forward_hooks, f"{again} forward hooks.")
    require(not args.enable_pdmux, f"{again} PDMux.")


def _layout(r: Resolution) -> None:
    args = r.args
    named = "attention DP (--attn-dp-size)" if r.since(0, 5, 22) else "--enable-dp-attention"
    require(
        attn_dp_enabled(args),
        f"Elastic EP scale-up requires {named}; without it the TP group is not equivalent to "
        "WORLD and the post-scale collective path is invalid.",
    )
    require(
        args.enable_dp_lm_head,
        "Elastic EP scale-up requires --enable-dp-lm-head so output projection does not depend on the joining group's "
        "TP size.",
    )
    require(
        args.attn_cp_size == 1,
        f"Elastic EP scale-up requires --attn-cp-size 1 (got attn_cp_size={args.attn_cp_size}).",
    )
    require(
        args.moe_dp_size == 1,
        f"Elastic EP scale-up requires --moe-dp-size 1 (got moe_dp_size={args.moe_dp_size}).",
    )
    require(
        args.ep_size == args.tp_size,
        f"Elastic EP scale-up requires ep_size == tp_size (got ep_size={args.ep_size}, tp_size={args.tp_size}); "
        f"{at(_MEMBERSHIP, r.release.version)}.",
    )
    if not r.since(0, 5, 23):
        name = "attn_dp_size" if r.since(0, 5, 22) else "dp_size"
        require(
            args.attn_dp_size == args.tp_size,
            f"Elastic EP scale-up requires {name} == tp_size (got {name}={args.attn_dp_size}, tp_size={args.tp_size}).",
        )
    require(
        args.moe_a2a_backend == "nixl",
        f"Elastic EP scale-up requires --moe-a2a-backend nixl (got moe_a2a_backend={args.moe_a2a_backend}).",
    )
