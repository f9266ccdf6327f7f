"""How prefill reads an NVFP4 KV cache, turned into attention backends.

Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py`` (``handle_nvfp4_prefill_kv_dequant_dtype``).
"""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution

_BACKEND = {"fp8_e4m3": "flashinfer", "nvfp4": "trtllm_mha"}
_DTYPE = {backend: dtype for dtype, backend in _BACKEND.items()}


def run(r: Resolution) -> None:
    """Choose or check the backends of an NVFP4 KV cache."""
    args, sm100 = r.args, platform_of(r.hardware).is_sm100
    asked = args.prefill_kv_cache_dequant_dtype
    if args.kv_cache_dtype != "nvfp4":
        if asked != "auto":
            raise Refusal("ValueError", "--prefill-kv-cache-dequant-dtype applies only with --kv-cache-dtype=nvfp4.")
        return
    dtype = _automatic(r) if asked == "auto" else asked
    if dtype == "nvfp4" and not sm100:
        raise Refusal(
            "ValueError",
            "Native NVFP4 prefill currently requires SM100; use --prefill-kv-cache-dequant-dtype=fp8_e4m3 on this "
            "platform.",
        )
    target = _BACKEND[dtype]
    prefill, decode = args.prefill_attention_backend, args.decode_attention_backend
    if prefill is not None and prefill != target:
        raise Refusal(
            "ValueError",
            f"--prefill-kv-cache-dequant-dtype={dtype} requires prefill backend {target!r}, but "
            f"--prefill-attention-backend={prefill!r} was set. Remove the backend option and select the KV dtype only.",
        )
    if decode not in (None, "trtllm_mha"):
        raise Refusal(
            "ValueError",
            f"NVFP4 decode requires --decode-attention-backend=trtllm_mha; got {decode!r}. Remove the backend option; "
            "NVFP4 selects the supported decode implementation automatically.",
        )
    why = "an NVFP4 KV cache is read so"
    r.set("prefill_attention_backend", target, why)
    r.set("decode_attention_backend", "trtllm_mha", why)
    if asked == "auto":
        r.set("prefill_kv_cache_dequant_dtype", dtype, why, layer="engine-default")


def _automatic(r: Resolution) -> str:
    explicit = r.args.prefill_attention_backend or r.args.attention_backend
    if explicit in _DTYPE:
        return _DTYPE[explicit]
    if explicit is not None:
        raise Refusal(
            "ValueError",
            f"NVFP4 prefill supports an FP8 E4M3 workspace or native NVFP4, but backend {explicit!r} provides neither.",
        )
    return "nvfp4" if platform_of(r.hardware).is_sm100 else "fp8_e4m3"
