"""FP4 and MXFP8 KV caches: the GPUs, backends and features that can read them.

Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py`` (``handle_kv4_compatibility``,
``handle_mxfp8_kv_cache_compatibility``).
"""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution

_NATIVE_DRAFTS = ("EAGLE", "EAGLE3", "NEXTN", "NGRAM")
_MLA = ["flashinfer", "trtllm_mla"]
_MHA_BESIDE_FA4 = ["triton", "torch_native", "flex_attention"]
_MHA = [*_MHA_BESIDE_FA4, "trtllm_mha"]


def mxfp8(r: Resolution) -> None:
    """MXFP8 needs Blackwell."""
    if r.args.kv_cache_dtype == "mxfp8" and not platform_of(r.hardware).is_blackwell:
        raise Refusal(
            "ValueError",
            "--kv-cache-dtype mxfp8 requires an SM100+ (Blackwell) GPU for the block-scaled operands used by the FA4 "
            "MXFP8 attention path.",
        )


def run(r: Resolution) -> None:
    """Refuse what cannot read an FP4 KV cache; give a draft model the target's layout."""
    args, platform = r.args, platform_of(r.hardware)
    fp4 = ("nvfp4", "fp4_mx_block16") if r.since(0, 5, 16) else ("fp4_e2m1",)
    if args.kv_cache_dtype not in fp4:
        return
    nvfp4 = args.kv_cache_dtype == "nvfp4"
    if nvfp4 and not (platform.is_sm100 or platform.is_sm120):
        raise Refusal(
            "RuntimeError",
            "--kv-cache-dtype=nvfp4 requires Blackwell SM100 or SM120. Use --kv-cache-dtype=fp4_mx_block16 for the "
            "block-size-16 FP4 recipe.",
        )
    if args.enable_unified_memory and r.since(0, 5, 21):
        raise Refusal(
            "ValueError",
            "FP4 KV cache does not yet support --enable-unified-memory: the unified MHA pool does not allocate FP4 "
            "block scales or the prefill dequant workspace.",
        )
    prefill, decode = attention_backends(args)
    native = nvfp4 and platform.is_sm100 and "trtllm_mha" in (prefill, decode) and r.since(0, 5, 21)
    mixed = nvfp4 and prefill == "flashinfer" and decode == "trtllm_mha" and r.since(0, 5, 21)
    if native:
        _native(r, mixed)
    if prefill != decode and prefill != "fa4":
        if not mixed:
            r.warn(
                f"WARNING: Attention: Using KV4 with PREFILL = {prefill} and DECODE = {decode}. Compatibility issues "
                "are unlikely, but may occur in rare edge cases."
            )
        return
    kind = "MLA" if r.model.use_mla else "MHA"
    mla = _MLA if r.since(0, 5, 20) else ["cutlass_mla", *_MLA]
    if prefill == "fa4":
        choices = mla if kind == "MLA" else _MHA_BESIDE_FA4
        if decode not in choices:
            raise Refusal(
                "AssertionError",
                f"KV4 FA4 {kind} expects decode_attention_backend to be one of {choices}, but got {decode}",
            )
    else:
        flashmla = [] if r.since(0, 5, 16) else ["flashmla"]
        choices = [*mla, *flashmla] if kind == "MLA" else _MHA
        if args.attention_backend not in choices:
            raise Refusal(
                "AssertionError",
                f"KV4 {kind} expects attention_backend to be one of {choices}, but got {args.attention_backend}",
            )


def _native(r: Resolution, mixed: bool) -> None:
    args = r.args
    algorithm = args.speculative_algorithm.upper() if args.speculative_algorithm is not None else None
    if algorithm in ("DFLASH", "DSPARK"):
        raise Refusal(
            "ValueError",
            f"SM100 native NVFP4 speculative decoding does not yet support {algorithm}; use EAGLE/NEXTN or NGRAM.",
        )
    if algorithm is not None and algorithm not in _NATIVE_DRAFTS:
        raise Refusal(
            "ValueError",
            "SM100 native NVFP4 speculative decoding supports EAGLE, EAGLE3, NEXTN, and breadth-1 NGRAM; got "
            f"{algorithm}.",
        )
    breadth = args.speculative_ngram_max_bfs_breadth
    if algorithm == "NGRAM" and breadth != 1:
        raise Refusal(
            "ValueError",
            "SM100 native NVFP4 NGRAM speculative decoding requires --speculative-ngram-max-bfs-breadth=1 because "
            f"trtllm_mha supports linear target verification only; got {breadth}.",
        )
    if algorithm not in (None, "NGRAM"):
        draft = args.speculative_draft_attention_backend
        if draft is None:
            r.warn("WARNING: SM100 native NVFP4 speculative decoding uses trtllm_mha for the draft worker.")
            r.set("speculative_draft_attention_backend", "trtllm_mha", "the draft reads the target's NVFP4 layout")
        elif draft != "trtllm_mha":
            raise Refusal(
                "ValueError",
                "SM100 native NVFP4 speculative decoding requires --speculative-draft-attention-backend=trtllm_mha so "
                f"the draft worker consumes its physical NVFP4 KV layout; got {draft!r}.",
            )
    if mixed and args.speculative_algorithm is not None and args.speculative_attention_mode == "prefill":
        r.warn(
            "WARNING: SM100 mixed NVFP4 speculative decoding routes target verify to trtllm_mha; overriding "
            "--speculative-attention-mode=prefill to decode."
        )
        r.set("speculative_attention_mode", "decode", "only the decode side can verify inside a graph")
    if args.disaggregation_mode != "null":
        raise Refusal(
            "ValueError",
            "SM100 native NVFP4 with trtllm_mha does not yet support PD disaggregation because its physical "
            "block-scale layout is not implemented by the KV transfer path.",
        )
    if args.enable_hierarchical_cache or args.enable_lmcache:
        raise Refusal(
            "ValueError",
            "SM100 native NVFP4 with trtllm_mha does not yet support hierarchical KV cache or LMCache because their "
            "host pools do not preserve the physical block-scale layout.",
        )
