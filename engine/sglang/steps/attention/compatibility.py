"""What an attention backend demands: graphs off, page sizes, GPUs, KV-cache types.

Source: SGLang 0.5.23, ``arg_groups/attention_hook.py`` (``handle_attention_backend_compatibility``) and the passes of
``arg_groups/overrides.py`` that it runs.
"""

from __future__ import annotations

from engine.launch import PHASES
from engine.sglang import environ
from engine.sglang.derived import attention_backends
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution, Version
from engine.sglang.steps.attention import default, dual_chunk
from engine.sglang.versioned import FIRST, at

_EAGER = {"torch_native": "torch native attention backend", "flex_attention": "torch Flex Attention backend"}
_MLA_PAGES = (("trtllm_mla", "TensorRT-LLM MLA", False), ("cutedsl_mla", "CuteDSL MLA", True))
_TRTLLM_MHA_PAGES: tuple[tuple[Version, tuple[tuple[int, ...], str]], ...] = (
    ((0, 5, 17), ((16, 32, 64, 128), "16, 32, 64 or 128")),
    (FIRST, ((16, 32, 64), "16, 32 or 64")),
)
_TOKENSPEED = ("tokenspeed_mla", "tokenspeed_mla", False)
_MLA_PAGES_BEFORE = (_MLA_PAGES[0], _TOKENSPEED, _MLA_PAGES[1])


def run(r: Resolution) -> None:
    """Fill in the default backend and apply what the backends demand, in the engine's order."""
    # The engine builds its model here even where the backend is given, and refuses what it cannot read.
    whisper = "WhisperForConditionalGeneration" in r.model.architectures
    default.run(r)
    _eager(r)
    if whisper and not r.args.disable_radix_cache:
        r.set("disable_radix_cache", True, "Whisper's encoder padding does not go with prefix caching")
    _pages(r)
    _trtllm_mla(r)
    if not r.since(0, 5, 23):
        _tokenspeed(r)
    _cutedsl(r)
    _trtllm_mha(r)
    _fa3_fp8(r)
    _fa4_page(r)
    _aiter_workspace(r)
    _intel_page(r)
    if not r.since(0, 5, 20):
        dual_chunk.run(r)


def _eager(r: Resolution) -> None:
    backend = r.args.attention_backend
    if backend not in _EAGER:
        return
    r.warn(f"WARNING: Cuda graph is disabled because of using {_EAGER[backend]}")
    for phase in PHASES:
        r.set_graph(phase, "backend", "disabled", f"the {backend} attention backend cannot be captured")
    if backend == "flex_attention" and r.args.speculative_algorithm is not None:
        raise Refusal("AssertionError", "Speculative decoding is currently not supported with Flex Attention backend")


def _pages(r: Resolution) -> None:
    args = r.args
    common, prefill, decode = args.attention_backend, args.prefill_attention_backend, args.decode_attention_backend
    page = args.page_size
    if "flashmla" in (common, decode):
        r.warn("WARNING: FlashMLA only supports a page_size of 64, change page_size to 64.")
        page = 64
    if "cutlass_mla" in (common, decode):  # until 0.5.19
        r.warn("WARNING: Cutlass MLA only supports a page_size of 128, change page_size to 128.")
        page = 128
    for backend, title, with_prefill in _MLA_PAGES if r.since(0, 5, 23) else _MLA_PAGES_BEFORE:
        named = (common, decode, prefill) if with_prefill else (common, decode)
        if backend in named and page not in (32, 64):
            r.warn(f"WARNING: {title} only supports page_size of 32 or 64, changing page_size from {page} to 64.")
            page = 64
    draft = args.speculative_draft_attention_backend if r.since(0, 5, 17) else None
    sizes, named_sizes = at(_TRTLLM_MHA_PAGES, r.release.version)
    if "trtllm_mha" in (common, decode, prefill, draft) and page not in sizes:
        r.warn(
            f"WARNING: TensorRT-LLM MHA only supports page_size of {named_sizes}, changing page_size from {page} to 64."
        )
        page = 64
    if "hpc_ops" in (common, decode, prefill) and page != 64:
        r.warn(f"WARNING: HPC-Ops attention only supports a page_size of 64, changing page_size from {page} to 64.")
        page = 64
    if page != args.page_size:
        r.set("page_size", page, "the attention backend's kernels read pages of this size only")


def _trtllm_mla(r: Resolution) -> None:
    args = r.args
    if "trtllm_mla" not in (args.attention_backend, args.decode_attention_backend):
        return
    if not platform_of(r.hardware).is_blackwell:
        raise Refusal(
            "ValueError",
            "TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different backend.",
        )
    fp4 = () if r.since(0, 5, 21) else ("fp4_e2m1",)
    dtypes = ("fp8_e4m3", *fp4, "bf16")
    if args.kv_cache_dtype not in (*dtypes, "auto"):
        raise Refusal(
            "ValueError", f"TensorRT-LLM MLA backend only supports kv-cache-dtype of {', '.join(dtypes)}, or auto."
        )


def _tokenspeed(r: Resolution) -> None:
    """Until 0.5.23 a backend of its own; then another name of cutedsl_mla."""
    args = r.args
    if "tokenspeed_mla" not in (args.attention_backend, args.decode_attention_backend):
        return
    if not platform_of(r.hardware).is_blackwell:
        raise Refusal("ValueError", "tokenspeed_mla backend is only supported on Blackwell GPUs (SM100/SM12x).")
    if args.kv_cache_dtype != "fp8_e4m3":
        raise Refusal(
            "ValueError", f"tokenspeed_mla backend requires kv-cache-dtype=fp8_e4m3, got {args.kv_cache_dtype}."
        )


def _cutedsl(r: Resolution) -> None:
    args = r.args
    backends = (args.attention_backend, args.decode_attention_backend, args.prefill_attention_backend)
    if "cutedsl_mla" not in backends:
        return
    if args.prefill_attention_backend == "cutedsl_mla":
        raise Refusal("AssertionError", "CuteDSL MLA only supports decoding for now")
    if not platform_of(r.hardware).is_sm100:
        raise Refusal(
            "ValueError",
            "CuteDSL MLA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.",
        )
    if args.kv_cache_dtype not in ("fp8_e4m3", "bf16", "bfloat16", "auto"):
        raise Refusal("ValueError", "CuteDSL MLA backend only supports kv-cache-dtype of fp8_e4m3, bf16, or auto.")
    if args.prefill_attention_backend is None:
        r.set("prefill_attention_backend", "trtllm_mla", "CuteDSL MLA decodes only; prefill needs another backend")


def _trtllm_mha(r: Resolution) -> None:
    prefill, decode = attention_backends(r.args)
    if "trtllm_mha" not in (prefill, decode):
        return
    platform = platform_of(r.hardware)
    served = platform.is_sm90 or platform.is_sm100 or platform.is_sm120
    if prefill == "trtllm_mha" and not platform.is_sm100 and not r.since(0, 5, 19):
        raise Refusal(
            "ValueError",
            "TRTLLM MHA backend for prefill is only supported on Blackwell GPUs (SM100). "
            "Please use a different prefill backend.",
        )
    if prefill == "trtllm_mha" and not served:
        raise Refusal(
            "ValueError",
            "TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs. "
            "Please use a different prefill backend.",
        )
    skip = environ.read(r, "SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR") or 0.0
    if prefill == "trtllm_mha" and platform.is_sm120 and (r.args.kv_cache_dtype == "fp8_e4m3" or skip > 0):
        raise Refusal(
            "ValueError", "TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache or skip-softmax."
        )
    if decode == "trtllm_mha" and not served:
        raise Refusal(
            "ValueError",
            "TRTLLM MHA backend for decode is only supported on Hopper (SM90), Blackwell (SM100) and (SM120) GPUs. "
            "Please use a different decode backend.",
        )
    legacy_cp = r.args.__dict__.get("enable_prefill_context_parallel")  # until 0.5.19
    if prefill == "trtllm_mha" and not platform.is_sm100 and (legacy_cp or r.args.attn_cp_size > 1):
        raise Refusal(
            "ValueError",
            "Prefill context parallelism with the TRTLLM MHA prefill backend requires SM100 (trtllm-gen context "
            "kernel): the SM90/SM120 fmha_v2 prefill path does not implement CP shard masking.",
        )


def _fa3_fp8(r: Resolution) -> None:
    if r.args.attention_backend == "fa3" and r.args.kv_cache_dtype == "fp8_e5m2":
        r.warn("WARNING: FlashAttention3 only supports fp8_e4m3 if using FP8; Setting attention backend to triton.")
        r.set("attention_backend", "triton", "FlashAttention 3 cannot read an fp8_e5m2 KV cache")


def _fa4_page(r: Resolution) -> None:
    args = r.args
    backends = [args.attention_backend, args.decode_attention_backend, args.prefill_attention_backend]
    if not r.since(0, 5, 15):
        backends = [args.prefill_attention_backend]
    if "fa4" not in backends or r.model.use_mla or not platform_of(r.hardware).is_sm100:
        return
    if (args.speculative_eagle_topk or 0) > 1 and r.since(0, 5, 15):
        return
    if r.since(0, 5, 22) and "DiffusionGemmaForBlockDiffusion" in r.model.architectures:
        r.set("page_size", 1, "FlashAttention 4 reads DiffusionGemma's blocks from pages of one token")
        return
    r.warn(
        "WARNING: FA4 backend only supports page size 128 for non-MLA model architectures, changing page_size from "
        f"{args.page_size} to 128."
    )
    r.set("page_size", 128, "FlashAttention 4 reads pages of 128 tokens only")


def _aiter_workspace(r: Resolution) -> None:
    """The engine leaves AITER's backend room without asking which GPU it runs on."""
    args = r.args
    if args.attention_backend != "aiter" or r.model.context_len <= 8192:
        return
    if "mem_fraction_static" in r.given and environ.read(r, "SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION"):
        return
    r.set("mem_fraction_static", args.mem_fraction_static * 0.85, "AITER needs workspace for contexts beyond 8,192")


def _intel_page(r: Resolution) -> None:
    prefill, decode = attention_backends(r.args)
    mla, both = r.model.use_mla, r.since(0, 5, 20)
    if not both and mla and prefill == "intel_xpu":
        raise Refusal(
            "ValueError",
            "intel_xpu backend is only supported on decode for MLA models, please set --decode-attention-backend to "
            "intel_xpu and do not set --attention-backend or --prefill-attention-backend to intel_xpu for prefill "
            "instead use triton.",
        )
    if "intel_xpu" not in ((prefill, decode) if both else (decode,)):
        return
    sizes = [64, 128]
    if mla:
        sizes = [*sizes, 16, 32] if both else [16, 32, *sizes]
    if r.args.page_size not in sizes:
        title = "Intel XPU attention backend" + ((" for MLA" if both else " for MLA Decode") if mla else "")
        r.warn(
            f"WARNING: {title} only supports page_sizes of {sizes}, changing page_size from {r.args.page_size} to 128."
        )
        r.set("page_size", 128, "the intel_xpu backend reads pages of these sizes only")
