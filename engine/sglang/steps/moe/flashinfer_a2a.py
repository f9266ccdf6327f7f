"""FlashInfer's all-to-all: topology, dispatch type, runner, and a workspace that holds the largest forward."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.memory.post_capture import max_prefill_buffer_tokens
from engine.sglang.steps.moe.graph_tokens import decode_graph_tokens
from engine.sglang.steps.refusals import invalid, require, unguarded
from engine.sglang.versioned import FIRST, at

_RUNNERS = ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm", "flashinfer_trtllm_routed", "deep_gemm")
_RUNNERS_BEFORE = ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm_routed")
_RUNNER_WORDS: tuple[tuple[Version, tuple[tuple[str, ...], str]], ...] = (
    (
        (0, 5, 19),
        (
            _RUNNERS,
            (
                "FlashInfer MoE A2A is supported with flashinfer_cutlass, flashinfer_cutedsl, flashinfer_trtllm, "
                "flashinfer_trtllm_routed, or deep_gemm."
            ),
        ),
    ),
    (
        (0, 5, 15),
        (
            _RUNNERS_BEFORE,
            (
                "Flashinfer MoE A2A is only supported with flashinfer_cutlass, flashinfer_cutedsl or "
                "flashinfer_trtllm_routed moe runner backend"
            ),
        ),
    ),
    (
        FIRST,
        (
            _RUNNERS_BEFORE[:2],
            "Flashinfer MoE A2A is only supported with flashinfer_cutlass or flashinfer_cutedsl moe runner backend",
        ),
    ),
)
_DISPATCH = "SGLANG_MOE_NVFP4_DISPATCH"
_LEAST_CAPACITY = 4096
_TOPOLOGY: tuple[tuple[Version, str], ...] = (
    (
        (0, 5, 23),
        (
            "Flashinfer MoE A2A requires --attn-dp-size equal to --tp-size, except for Muse Spark TP4/EP4 or TP8/EP8 "
            "prefill sequence parallelism."
        ),
    ),
    ((0, 5, 22), "Flashinfer MoE A2A is only supported with --attn-dp-size equal to --tp-size"),
    (FIRST, "Flashinfer MoE A2A is only supported with dp_size == tp_size and --enable-dp-attention"),
)


def run(r: Resolution) -> None:
    """Every rank must dispatch alike; the dispatch type follows the quantization."""
    args = r.args
    require(_uniform(r), at(_TOPOLOGY, r.release.version))
    if args.deepep_mode != "auto":
        r.warn("WARNING: --deepep-mode is ignored for Flashinfer MoE A2A")
    w4a16 = args.moe_runner_backend == "flashinfer_cutedsl" and environ.read(r, "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")
    if w4a16 and environ.read(r, _DISPATCH):
        raise invalid(f"CuTe DSL NVFP4 W4A16 requires BF16 FlashInfer MoE dispatch; unset {_DISPATCH}.")
    if args.flashinfer_a2a_dispatch_type is None:
        nvfp4 = args.quantization == "modelopt_fp4" or r.model.nvfp4_moe
        if nvfp4 and not w4a16 and not environ.is_set(r, _DISPATCH):
            environ.put(r, _DISPATCH, True)
            r.warn(f"WARNING: {_DISPATCH} is set to True for Flashinfer MoE A2A")
    else:
        if args.moe_runner_backend == "flashinfer_trtllm":
            r.set("moe_runner_backend", "flashinfer_trtllm_routed", "dispatch brings the chosen experts along")
        if w4a16 and args.flashinfer_a2a_dispatch_type in ("auto", "nvfp4"):
            raise invalid("CuTe DSL NVFP4 W4A16 requires --flashinfer-a2a-dispatch-type bf16.")
        _dispatch_type(r)
    runners, words = at(_RUNNER_WORDS, r.release.version)
    require(args.moe_runner_backend in runners, words)


def _uniform(r: Resolution) -> bool:
    args = r.args
    dp = attn_dp_enabled(args)
    if dp and args.attn_dp_size == args.tp_size:
        return True
    return bool(
        r.since(0, 5, 23)
        and args.enable_layernorm_sp
        and not dp
        and args.attn_dp_size == 1
        and (args.tp_size, args.ep_size) in ((4, 4), (8, 8))
        and r.model.arch == "MuseSparkForConditionalGeneration"
    )


def _dispatch_type(r: Resolution) -> None:
    args = r.args
    if environ.is_set(r, _DISPATCH):
        raise invalid(f"{_DISPATCH} cannot be set together with --flashinfer-a2a-dispatch-type.")
    nvfp4 = args.quantization == "modelopt_fp4" or r.model.nvfp4_moe
    kind = args.flashinfer_a2a_dispatch_type or "auto"
    if kind == "auto":
        kind = "mxfp8" if args.quantization == "mxfp8" else "nvfp4" if nvfp4 else "bf16"
    if kind == "mxfp8":
        if args.quantization != "mxfp8":
            raise invalid("--flashinfer-a2a-dispatch-type mxfp8 requires --quantization mxfp8.")
        if args.moe_runner_backend != "flashinfer_trtllm_routed":
            raise invalid(
                "--flashinfer-a2a-dispatch-type mxfp8 requires --moe-runner-backend flashinfer_trtllm_routed."
            )
    elif kind == "nvfp4" and not nvfp4:
        raise invalid(
            "--flashinfer-a2a-dispatch-type nvfp4 requires NVFP4/modelopt-FP4 quantization or hybrid NVFP4 MoE "
            "metadata."
        )
    r.set("flashinfer_a2a_dispatch_type", kind, "by the quantization")


@unguarded
def budget(r: Resolution) -> None:
    """One rank's chunk, prefill graph and decode graph fit the workspace."""
    args = r.args
    if args.moe_a2a_backend != "flashinfer":
        return
    if args.disaggregation_mode != "decode" and args.chunked_prefill_size <= 0:
        raise invalid(
            "FlashInfer MoE A2A requires chunked prefill: eager prefill dispatches the whole per-rank extend batch "
            "through a fixed-size workspace, so --chunked-prefill-size must be > 0."
        )
    needed = 0
    if args.disaggregation_mode != "decode":
        needed = max_prefill_buffer_tokens(r)
        if r.graph["prefill"].backend != "disabled":
            needed = max(needed, r.graph["prefill"].max_bs or 0)
    requests, tokens = decode_graph_tokens(r)
    needed = max(needed, requests * tokens)
    capacity = environ.read(r, "SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK")
    if capacity is None:
        capacity = max(max_prefill_buffer_tokens(r), _LEAST_CAPACITY)
    if needed > capacity:
        raise invalid(
            f"FlashInfer MoE A2A per-rank token budget exceeds its workspace: required={needed} tokens per rank "
            "(prefill "
            f"chunk, prefill graph, or decode/verify graph), capacity={capacity}. Set "
            f"SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK>={needed}, or unset it to size from "
            "--chunked-prefill-size, or lower --chunked-prefill-size / the CUDA graph max batch sizes."
        )
