"""DeepSeek sparse attention: the type of its KV cache and the kernels of prefill and decode.

Source: SGLang 0.5.23, ``arg_groups/overrides.py``.
"""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution

_SINK_BACKEND = "flashmla_sparse"


def kv_cache_dtype(r: Resolution) -> None:
    """FP8 on Blackwell and bfloat16 before it, where nobody says otherwise."""
    args, major = r.args, platform_of(r.hardware).major
    given = args.kv_cache_dtype
    if (args.dsa_prefill_backend is not None or args.dsa_decode_backend is not None) and given == "auto":
        r.warn(
            "WARNING: When specifying --dsa-prefill-backend or --dsa-decode-backend, you should also explicitly set "
            "--kv-cache-dtype (e.g., 'fp8_e4m3' or 'bfloat16'). DeepSeek V3.2 defaults to FP8 KV cache which may not "
            "be compatible with all backends."
        )
    sinks = r.since(0, 5, 20) and bool(r.model.hf.get("learnable_sink", False))
    if sinks and given not in ("auto", "bf16", "bfloat16"):
        raise Refusal(
            "ValueError",
            f"Learnable DSA attention sinks require a bfloat16 KV cache; got kv_cache_dtype={given}.",
        )
    dtype = given
    if dtype == "auto":
        dtype = "fp8_e4m3" if major >= 10 and not sinks else "bfloat16"
        r.warn(f"WARNING: Setting KV cache dtype to {dtype} for DeepSeek DSA on SM{major} device.")
    if dtype == "bf16":
        dtype = "bfloat16"
    if dtype not in ("bfloat16", "fp8_e4m3"):
        raise Refusal("AssertionError", "DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype")
    if dtype != given:
        r.set("kv_cache_dtype", dtype, "DSA's KV cache on this GPU", layer="engine-default")


def split_backends(r: Resolution) -> None:
    """The sparse kernels of prefill and decode."""
    args, model, major = r.args, r.model, platform_of(r.hardware).major
    dtype = args.kv_cache_dtype
    if model.hf.get("learnable_sink", False) and r.since(0, 5, 20):
        for name in ("dsa_prefill_backend", "dsa_decode_backend"):
            value = getattr(args, name)
            if value is not None and value != _SINK_BACKEND:
                raise Refusal(
                    "ValueError",
                    f"{model.arch} uses learnable attention sinks and requires --{name.replace('_', '-')} "
                    f"{_SINK_BACKEND!r}; got {value!r}",
                )
        _fill(r, _SINK_BACKEND, _SINK_BACKEND)
        return
    if model.arch == "GlmMoeDsaForCausalLM" and major == 12 and dtype == "fp8_e4m3" and r.since(0, 5, 17):
        _fill(r, "flashinfer_sparse_mla", "flashinfer_sparse_mla")
        return
    if args.enable_hisparse:
        backend = "flashmla_kv" if dtype == "fp8_e4m3" else "flashmla_sparse"
        _fill(r, backend, backend)
        tilelang = "tilelang" in (args.dsa_prefill_backend, args.dsa_decode_backend)
        if dtype == "fp8_e4m3" and tilelang and r.since(0, 5, 22):
            raise Refusal("ValueError", "CUDA TileLang FP8 KV does not support HiSparse.")
        if not r.since(0, 5, 20):
            return
    elif dtype == "fp8_e4m3":
        backend = "trtllm" if major >= 10 else "flashmla_kv"
        _fill(r, backend, backend)
    else:
        _fill(r, "flashmla_sparse", "trtllm" if major >= 10 else "fa3")
    _constraints(r)


def _fill(r: Resolution, prefill: str, decode: str) -> None:
    why = "DSA's kernels for this KV cache on this GPU"
    if r.args.dsa_prefill_backend is None:
        r.set("dsa_prefill_backend", prefill, why, layer="engine-default")
    if r.args.dsa_decode_backend is None:
        r.set("dsa_decode_backend", decode, why, layer="engine-default")


def _constraints(r: Resolution) -> None:
    args, platform = r.args, platform_of(r.hardware)
    prefill, decode = args.dsa_prefill_backend, args.dsa_decode_backend
    if "triton" in (prefill, decode):
        raise Refusal(
            "ValueError",
            "The triton DSA backend is only supported on ROCm/HIP. Pick an alternative DSA backend for CUDA "
            "(flashmla_kv on Hopper, trtllm on Blackwell).",
        )
    if args.kv_cache_dtype != "fp8_e4m3" or "tilelang" not in (prefill, decode) or not r.since(0, 5, 17):
        return
    if not r.since(0, 5, 22):
        with_it = "" if r.since(0, 5, 20) else " with the tilelang backend"
        raise Refusal(
            "ValueError",
            "The tilelang DSA prefill/decode kernels only support an fp8_e4m3 KV cache on ROCm/HIP; on CUDA they "
            f"require a bfloat16 KV cache. Use --kv-cache-dtype bfloat16{with_it}, or keep --kv-cache-dtype fp8_e4m3 "
            "and pick an fp8-capable DSA backend (flashmla_kv on Hopper, trtllm on Blackwell).",
        )
    if prefill != "tilelang" or decode != "tilelang":
        raise Refusal(
            "ValueError",
            "CUDA TileLang FP8 KV requires both DSA backends to be tilelang; raw and scaled FP8 KV layouts cannot be "
            "mixed.",
        )
    if (args.dcp_size or 1) > 1:
        raise Refusal("ValueError", "CUDA TileLang FP8 KV does not support --dcp-size > 1.")
    if (platform.major, platform.minor) < (8, 9):
        raise Refusal("ValueError", "CUDA TileLang FP8 KV requires SM89 or newer.")
