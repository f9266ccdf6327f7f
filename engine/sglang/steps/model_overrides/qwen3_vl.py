"""Qwen3-VL on large Hopper GPUs: the engine's profiled serving path."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import gpu_memory_mib
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values

_LARGE_MIB = 60 * 1024
_TYPES = ("qwen3_vl", "qwen3_vl_moe")


def large_hopper(r: Resolution) -> bool:
    """Whether the launch serves Qwen3-VL with its vision tower on a Hopper GPU of 60 GiB or more."""
    return bool(
        platform_of(r.hardware).is_sm90
        and gpu_memory_mib(r) >= _LARGE_MIB
        and r.model.is_multimodal
        and r.model.model_type in _TYPES
    )


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    if not large_hopper(r):
        return {}
    args = r.args
    if not environ.is_set(r, "SGLANG_VLM_CACHE_SIZE_MB"):
        environ.put(r, "SGLANG_VLM_CACHE_SIZE_MB", 0)
    out: Values = {}
    cache = args.mm_preprocess_cache_size_mb
    if cache is None:
        cache = out["mm_preprocess_cache_size_mb"] = 0
    retained = cache > 0 or environ.read(r, "SGLANG_VLM_CACHE_SIZE_MB") > 0
    if args.mm_feature_transport is None and args.nnodes == 1 and not retained:
        out["mm_feature_transport"] = "cuda_ipc"
    if args.radix_eviction_policy == "lru" and "radix_eviction_policy" not in r.given:
        out["radix_eviction_policy"] = "priority"
    if args.prefill_decode_interval is None:
        out["prefill_decode_interval"] = 22
    if args.attention_backend is None and args.decode_attention_backend is None:
        out["decode_attention_backend"] = "flashinfer"
    return out


OVERRIDES = (
    Override(
        family="Qwen3-VL on Hopper",
        look=look,
        architectures=("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"),
        since=(0, 5, 20),
    ),
)
