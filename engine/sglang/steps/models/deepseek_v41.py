"""DeepSeek V4.1 in releases before 0.5.23: its limits, and the longest sequence of its prefill graph.

Source: SGLang 0.5.21 and 0.5.22, ``arg_groups/deepseek_v4_hook.py`` (``validate_deepseek_v41_features``).
"""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled, num_dp_ranks
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.linear import ragged_verify_mode

_GRAPH_TOKENS = 16 * 1024


def features(r: Resolution) -> None:
    """Refuse what the model does not run with; bound the sequences of a prefill graph."""
    args, graph = r.args, r.graph["prefill"]
    trtllm = args.dsv4_attn_backend == "trtllm"
    if trtllm and graph.backend != "disabled" and r.since(0, 5, 22):
        raise _invalid("DeepSeek-V4.1 TRT-LLM requires --cuda-graph-backend-prefill disabled")
    if args.enable_encoder_swa_bounded_replay:
        _encoder_replay(r)
    algorithm = args.speculative_algorithm
    replay = args.enable_encoder_swa_bounded_replay or args.enable_decoder_swa_bounded_replay
    for feature, enabled in (
        ("speculative decoding other than DSpark", algorithm is not None and str(algorithm).upper() != "DSPARK"),
        ("HiSparse", args.enable_hisparse),
        ("TRT-LLM with SWA bounded replay", trtllm and replay and r.since(0, 5, 22)),
        ("the trtllm DSv4 attention backend", trtllm and not r.since(0, 5, 22)),
        ("two-batch overlap", args.enable_two_batch_overlap),
        ("pipeline parallelism", args.pp_size > 1),
    ):
        if enabled:
            raise _invalid(f"DeepSeek-V4.1 does not support {feature} yet; disable it to serve this model.")
    if args.disaggregation_mode != "null" and algorithm is not None:
        _disaggregated_drafts(r)
    captured_under_cp = (
        r.since(0, 5, 22)
        and args.enable_prefill_cp
        and args.cp_strategy == "interleave"
        and args.tp_size > 1
        and graph.backend == "breakable"
    )
    if graph.backend != "disabled" and graph.max_seq_len is None and not captured_under_cp:
        r.set_graph("prefill", "max_seq_len", _GRAPH_TOKENS, "longer contexts of DeepSeek V4.1 run prefill eagerly")
        r.warn(
            "WARNING: Setting cuda_graph_config[prefill].max_seq_len to 16384 for DeepSeek-V4.1; longer contexts run "
            "eager prefill."
        )
    if args.enable_decoder_swa_bounded_replay:
        _decoder_replay(r)


def _invalid(message: str) -> Refusal:
    return Refusal("ValueError", message)


def _encoder_replay(r: Resolution) -> None:
    args = r.args
    for feature, enabled in (
        ("prefill CUDA graphs", r.graph["prefill"].backend != "disabled"),
        ("DP attention", attn_dp_enabled(args)),
        ("context parallelism", args.attn_cp_size > 1),
        ("external cache linker", args.enable_unified_cache_external_linker),
        ("unified memory", args.enable_unified_memory),
        ("PD disaggregation", args.disaggregation_mode != "null"),
        ("mixed prefill/decode", args.enable_mixed_chunk),
        ("LoRA", args.enable_lora),
        ("radix sessions", args.enable_session_radix_cache),
    ):
        if enabled:
            raise _invalid(f"--enable-encoder-swa-bounded-replay does not support {feature} yet")
    requests, chunk = args.max_running_requests, args.chunked_prefill_size
    if requests is None or requests <= 0 or not chunk or chunk < 128:
        raise _invalid("encoder SWA replay requires explicit --max-running-requests and --chunked-prefill-size >= 128")


def _disaggregated_drafts(r: Resolution) -> None:
    args = r.args
    static = ragged_verify_mode(r) == "static"
    if r.since(0, 5, 22):
        prefill_cp = (
            args.disaggregation_mode == "prefill" and args.enable_prefill_cp and args.cp_strategy == "interleave"
        )
        if (
            not static
            or args.disaggregation_transfer_backend not in ("mooncake", "nixl")
            or ((args.enable_prefill_cp or args.attn_cp_size != 1) and not prefill_cp)
            or args.dcp_size != 1
        ):
            raise _invalid(
                "DeepSeek-V4.1 DSpark PD requires static verify, Mooncake or NIXL, DCP=1, and CP=1 on decode. Prefill "
                "CP requires --enable-prefill-cp with the interleave strategy. DP attention is supported when both "
                "servers use the same block size and target/draft KV layout."
            )
    elif (
        not static
        or args.disaggregation_transfer_backend != "mooncake"
        or num_dp_ranks(args) != 1
        or attn_dp_enabled(args)
        or args.attn_cp_size != 1
        or args.dcp_size != 1
    ):
        raise _invalid(
            "DeepSeek-V4.1 DSpark PD requires static verify, Mooncake, DP=1 and CP=1. Both servers must enable DSpark "
            "with the same block size and TP size."
        )


def _decoder_replay(r: Resolution) -> None:
    args, backend = r.args, r.graph["prefill"].backend
    dp = attn_dp_enabled(args)
    if r.since(0, 5, 22):
        served = (
            args.attn_dp_size == args.tp_size and args.attn_cp_size == 1 and args.moe_a2a_backend in ("none", "megamoe")
        )
        incompatible = (
            ("the prefill CUDA graph", backend not in ("disabled", "breakable")),
            ("DP attention other than attention TP 1 with supported MoE backends", dp and not served),
        )
    else:
        incompatible = (("the prefill CUDA graph", backend != "disabled"), ("DP attention", dp))
    for feature, enabled in incompatible:
        if enabled:
            raise _invalid(
                f"--enable-decoder-swa-bounded-replay cannot be combined with {feature} yet; disable one of them."
            )
