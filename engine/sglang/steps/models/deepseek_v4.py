"""DeepSeek V4 and V4.1 after their override: KV-cache type, attention kernels, request limit, context parallelism.

Source: SGLang 0.5.23, ``arg_groups/deepseek_v4_hook.py``.
"""

from __future__ import annotations

from typing import Any

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.attention.linear import ragged_verify_mode
from engine.sglang.steps.model_overrides.deepseek import attn_dp_of_context_parallel
from engine.sglang.steps.models import deepseek_v41
from engine.sglang.steps.moe import mega_moe_budget
from engine.sglang.versioned import FIRST, at

_V41 = "deepseek_v41"
_UNTESTED: tuple[tuple[Version, str], ...] = (
    ((0, 5, 23), "untested"),
    (FIRST, "uniform-FP8 KV layout is not part of the PD handshake"),
)
_ORDER: tuple[tuple[Version, str], ...] = (
    ((0, 5, 22), "CUDA/HIP backends reindex"),
    (FIRST, "the CUDA backend reindexes"),
)
_EAGER_OR_BREAKABLE = ("disabled", "breakable")


def _attention_tp(args: Any) -> bool:
    if args.enable_prefill_cp:
        return False
    return bool(args.tp_size // args.attn_cp_size // args.attn_dp_size > 1)


def _kernels(r: Resolution) -> str:
    args = r.args
    layout = environ.read(r, "SGLANG_DSV4_KV_LAYOUT")
    if (
        r.model.model_type != _V41
        or args.device != "cuda"
        or not platform_of(r.hardware).is_sm100
        or args.kv_cache_dtype != "fp8_e4m3"
        or (args.disaggregation_mode == "null" and _attention_tp(args))
        or (environ.is_set(r, "SGLANG_DSV4_KV_LAYOUT") and str(layout).lower() not in ("auto", "v41", "v41_new"))
    ):
        return "flashmla"
    return "flashmla_mega"


def defaults(r: Resolution) -> None:
    """KV-cache type, kernels, request limit, and the drafts that the family allows."""
    args, arch = r.args, r.model.arch
    dtype = args.kv_cache_dtype
    if dtype == "auto":
        dtype = "fp8_e4m3"
        r.warn(f"WARNING: Setting KV cache dtype to {dtype} for {arch}.")
    if dtype not in ("fp8_e4m3", "bfloat16"):
        raise Refusal("AssertionError", f"{dtype} is not supported for {arch}")
    if dtype != args.kv_cache_dtype:
        r.set("kv_cache_dtype", dtype, "the family's KV cache", layer="engine-default")
    if args.dsv4_attn_backend == "auto":
        r.set("dsv4_attn_backend", _kernels(r), "the family's kernels on this GPU", layer="engine-default")
    if args.dsv4_attn_backend == "flashmla_mega" and not (
        r.model.model_type == _V41 and args.device == "cuda" and platform_of(r.hardware).is_sm100
    ):
        raise Refusal("AssertionError", "--dsv4-attn-backend flashmla_mega requires DeepSeek-V4.1 on SM100/SM103.")
    if args.dsv4_attn_backend == "trtllm":
        _trtllm(r)
    if args.max_running_requests is None:
        r.set("max_running_requests", 256, "the family's limit", layer="engine-default")
        r.warn(f"WARNING: Setting max_running_requests to {args.max_running_requests} for {arch}.")
    algorithm = args.speculative_algorithm
    if algorithm is None:
        return
    if algorithm != "EAGLE" and not r.since(0, 5, 16):
        raise Refusal("AssertionError", f"Only EAGLE speculative algorithm is supported for {arch}")
    if algorithm not in ("EAGLE", "DSPARK"):
        raise Refusal("AssertionError", f"Only EAGLE and DSPARK speculative algorithms are supported for {arch}")
    if algorithm == "EAGLE" and args.speculative_eagle_topk != 1:
        raise Refusal("AssertionError", f"Only EAGLE speculative algorithm with topk == 1 is supported for {arch}")


def _trtllm(r: Resolution) -> None:
    args, option = r.args, "--dsv4-attn-backend trtllm"
    chunk = args.chunked_prefill_size
    for refused, message in (
        (
            args.device != "cuda" or not platform_of(r.hardware).is_sm100,
            f"{option} requires an SM100/SM103 (Blackwell) GPU.",
        ),
        (
            args.kv_cache_dtype not in ("auto", "fp8_e4m3"),
            f"{option} requires kv_cache_dtype=fp8_e4m3, got {args.kv_cache_dtype}.",
        ),
        (args.enable_hisparse, f"{option} does not support enable_hisparse."),
        (
            args.attn_cp_size > 1 or args.dcp_size > 1 or args.enable_prefill_cp,
            f"{option} does not support context parallelism (prefill CP, attention CP, or decode CP).",
        ),
        (
            args.disaggregation_mode != "null",
            (
                f"{option} does not support PD disaggregation yet ({at(_UNTESTED, r.release.version)}; see "
                "https://github.com/sgl-project/sglang/issues/37838)."
            ),
        ),
        (chunk is None or chunk <= 0, f"{option} requires chunked prefill (--chunked-prefill-size > 0)."),
    ):
        if refused:
            raise Refusal("AssertionError", message)


def validate(r: Resolution) -> None:
    """V4.1's own limits, then the family's prefill context parallelism; before 0.5.21 also MegaMoE's buffer."""
    if r.since(0, 5, 21):
        _features(r)
    if r.args.enable_prefill_cp:
        _context_parallel(r)
    if r.since(0, 5, 17) and not r.since(0, 5, 21):
        mega_moe_budget.deepseek_v4(r)


def _context_parallel(r: Resolution) -> None:
    args = r.args
    if not r.since(0, 5, 21) and args.cp_strategy != "interleave":
        raise Refusal("ValueError", f"DeepSeekV4 only supports interleave CP strategy, got {args.cp_strategy}")
    if args.cp_strategy not in ("interleave", "zigzag"):
        raise Refusal("ValueError", f"DeepSeekV4 only supports interleave/zigzag CP strategy, got {args.cp_strategy}")
    if args.cp_strategy == "zigzag":
        raise Refusal(
            "ValueError",
            f"DeepSeekV4 zigzag CP requires the NPU backend; {at(_ORDER, r.release.version)} with interleave order.",
        )
    attn_dp = attn_dp_of_context_parallel(r, "DeepSeek-V4 context parallelism")
    why = "the family's prefill context parallelism"
    if not r.since(0, 5, 22):
        r.set("enable_dp_attention", True, why)
    if not r.since(0, 5, 20):
        r.fill("enable_dsa_prefill_context_parallel", True)
        if r.since(0, 5, 18):  # before, the other old flag stayed on, and the two exclude each other later
            r.fill("enable_prefill_context_parallel", False)
    for name, value in (
        ("attn_dp_size", attn_dp),
        ("dp_size", 1),
        ("moe_dense_tp_size", 1),
        ("attn_cp_size", args.tp_size // attn_dp),
    ):
        r.set(name, value, why)
    if attn_dp != 1:
        raise Refusal("AssertionError", "For round-robin split mode, dp attention is not supported.")
    if args.tp_size > 8:
        raise Refusal(
            "AssertionError",
            "Context parallel only supports single machine (tp_size <= 8). Cross-machine CP has precision issues.",
        )
    supported = ("none", "deepep", "megamoe", *(("mori",) if r.since(0, 5, 19) else ()))
    if args.moe_a2a_backend not in supported and r.since(0, 5, 17):
        raise Refusal(
            "ValueError", f"DeepSeekV4 CP supports moe_a2a_backend in {supported}, got {args.moe_a2a_backend!r}."
        )


def replay_budget(r: Resolution) -> None:
    """The requests and tokens that a bounded replay of the encoder's window needs."""
    args = r.args
    if r.model.model_type != _V41:
        if args.enable_encoder_swa_bounded_replay:
            raise Refusal("ValueError", "--enable-encoder-swa-bounded-replay requires DeepSeek-V4.1")
        return
    if not args.enable_encoder_swa_bounded_replay:
        return
    least = 128 + (args.page_size or 1)
    requests, chunk = args.max_running_requests, args.chunked_prefill_size
    if requests is None or requests <= 0 or not chunk or chunk < least:
        raise Refusal(
            "ValueError",
            f"encoder SWA replay requires --max-running-requests > 0 and at least {least} chunked prefill tokens per "
            "attention DP rank (128 replay tokens plus one page)",
        )


def _features(r: Resolution) -> None:
    args = r.args
    if r.model.model_type != _V41:
        if args.enable_encoder_swa_bounded_replay:
            raise Refusal("ValueError", "--enable-encoder-swa-bounded-replay requires DeepSeek-V4.1")
        return
    graph = r.graph["prefill"].backend
    if not r.since(0, 5, 23):
        deepseek_v41.features(r)
        return
    if args.dsv4_attn_backend == "trtllm" and graph not in _EAGER_OR_BREAKABLE:
        raise Refusal("ValueError", "DeepSeek-V4.1 TRT-LLM requires --cuda-graph-backend-prefill disabled or breakable")
    if args.enable_encoder_swa_bounded_replay:
        for feature, enabled in (
            ("prefill CUDA graphs other than breakable", graph not in _EAGER_OR_BREAKABLE),
            ("context parallelism", args.attn_cp_size > 1),
            ("unified memory", args.enable_unified_memory),
            ("PD decode", args.disaggregation_mode == "decode"),
            ("mixed prefill/decode", args.enable_mixed_chunk),
            ("LoRA", args.enable_lora),
            ("radix sessions", args.enable_session_radix_cache),
        ):
            if enabled:
                raise Refusal("ValueError", f"--enable-encoder-swa-bounded-replay does not support {feature} yet")
    algorithm = args.speculative_algorithm
    for feature, enabled in (
        ("speculative decoding other than DSpark", algorithm is not None and str(algorithm).upper() != "DSPARK"),
        ("HiSparse", args.enable_hisparse),
        (
            "TRT-LLM with encoder SWA bounded replay",
            args.dsv4_attn_backend == "trtllm" and args.enable_encoder_swa_bounded_replay,
        ),
        ("two-batch overlap", args.enable_two_batch_overlap),
        ("pipeline parallelism", args.pp_size > 1),
    ):
        if enabled:
            raise Refusal(
                "ValueError", f"DeepSeek-V4.1 does not support {feature} yet; disable it to serve this model."
            )
    _disaggregated_drafts(r)
    _decoder_replay(r)


def _disaggregated_drafts(r: Resolution) -> None:
    args = r.args
    if args.disaggregation_mode == "null" or args.speculative_algorithm is None:
        return
    prefill_cp = args.disaggregation_mode == "prefill" and args.enable_prefill_cp and args.cp_strategy == "interleave"
    if (
        ragged_verify_mode(r) != "static"
        or args.disaggregation_transfer_backend not in ("mooncake", "nixl")
        or ((args.enable_prefill_cp or args.attn_cp_size != 1) and not prefill_cp)
        or args.dcp_size != 1
    ):
        raise Refusal(
            "ValueError",
            "DeepSeek-V4.1 DSpark PD requires static verify, Mooncake or NIXL, DCP=1, and CP=1 on decode. Prefill CP "
            "requires --enable-prefill-cp with the interleave strategy. DP attention is supported when both servers "
            "use the same block size and target/draft KV layout.",
        )


def _decoder_replay(r: Resolution) -> None:
    args = r.args
    incompatible = (
        ("the prefill CUDA graph", r.graph["prefill"].backend not in _EAGER_OR_BREAKABLE),
        (
            "DP attention other than attention TP 1 with supported MoE backends",
            attn_dp_enabled(args)
            and not (
                args.attn_dp_size == args.tp_size
                and args.attn_cp_size == 1
                and args.moe_a2a_backend in ("none", "megamoe")
            ),
        ),
    )
    if args.enable_decoder_swa_bounded_replay:
        for feature, unsupported in incompatible:
            if unsupported:
                raise Refusal(
                    "ValueError",
                    f"--enable-decoder-swa-bounded-replay cannot be combined with {feature} yet; disable one of them.",
                )
        return
    if args.enable_decoder_swa_bounded_replay is False:
        return
    enabled = (
        not (args.enable_prefill_cp or args.attn_cp_size != 1 or args.dcp_size != 1)
        and not args.enable_return_hidden_states
        and not any(unsupported for _, unsupported in incompatible)
    )
    r.set("enable_decoder_swa_bounded_replay", enabled, "supported here", layer="engine-default")
