"""Caches beside the KV pool that exclude each other: host pools, radix policies, LMCache.

Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py`` (``handle_cache_compatibility``).
"""

from __future__ import annotations

from typing import Any

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Refusal, Resolution

_RETRACTION = "--disaggregation-decode-retraction-backup=host_pool"
_SWA_RATIO_DEFAULT = 0.8


def run(r: Resolution) -> None:
    """Refuse what does not go together."""
    args = r.args
    if args.enable_session_radix_cache and args.radix_eviction_policy != "priority" and not r.since(0, 5, 17):
        raise Refusal("ValueError", "--enable-session-radix-cache requires --radix-eviction-policy priority")
    _retraction(args)
    _tlru(args)
    if args.enable_hierarchical_cache and args.disable_radix_cache:
        raise Refusal(
            "ValueError",
            "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used "
            "at the same time. Please use only one of them.",
        )
    _offload(args)
    ratio = args.swa_full_tokens_ratio
    if not 0 < (_SWA_RATIO_DEFAULT if ratio is None else ratio) <= 1.0:
        raise Refusal("ValueError", "--swa-full-tokens-ratio should be in range (0, 1.0].")
    if args.swa_prefix_tails is not None and args.swa_prefix_tails < 0:
        raise Refusal("ValueError", "--swa-prefix-tails should be a non-negative integer.")
    if args.enable_lmcache and r.since(0, 5, 21):
        _lmcache(args)


def _retraction(args: Any) -> None:
    if args.disaggregation_decode_retraction_backup != "host_pool":
        return
    if args.disaggregation_mode != "decode":
        raise Refusal("ValueError", f"{_RETRACTION} is only supported on a PD decode server.")
    if args.dcp_size > 1:
        raise Refusal("ValueError", f"{_RETRACTION} does not support --dcp-size > 1.")
    if args.enable_priority_scheduling and not args.disable_priority_preemption:
        raise Refusal(
            "ValueError",
            f"{_RETRACTION} requires --disable-priority-preemption when priority scheduling is enabled.",
        )


def _tlru(args: Any) -> None:
    if args.radix_eviction_policy != "tlru":
        return
    config = args.radix_eviction_policy_config or {}
    threshold, estimate = config.get("threshold", 0), config.get("next_prompt_estimate", 0)
    if threshold < 0 or estimate < 0:
        raise Refusal(
            "ValueError",
            "--radix-eviction-policy tlru requires non-negative 'threshold' and 'next_prompt_estimate' in "
            f"--radix-eviction-policy-config, got {threshold} and {estimate}.",
        )
    if threshold <= estimate:
        raise Refusal(
            "ValueError",
            "--radix-eviction-policy tlru needs 'threshold' greater than 'next_prompt_estimate' in "
            f"--radix-eviction-policy-config, got {threshold} <= {estimate}; otherwise no tokens are ever TEL-safe and "
            "T-LRU is exactly LRU.",
        )


def _offload(args: Any) -> None:
    if not args.disaggregation_decode_enable_offload_kvcache:
        return
    if args.disaggregation_mode != "decode":
        raise Refusal(
            "ValueError",
            "The argument disaggregation-decode-enable-offload-kvcache is only supported for decode side.",
        )
    if args.hicache_storage_backend is None:
        raise Refusal(
            "ValueError",
            "The argument disaggregation-decode-enable-offload-kvcache is only supported when hicache-storage-backend "
            "is provided.",
        )
    if args.disaggregation_decode_retraction_backup == "host_pool":
        raise Refusal(
            "ValueError",
            "The arguments disaggregation-decode-enable-offload-kvcache and "
            "disaggregation-decode-retraction-backup=host_pool are mutually exclusive: both build a decode host pool.",
        )


def _lmcache(args: Any) -> None:
    if args.enable_hierarchical_cache:
        raise Refusal("ValueError", "--enable-lmcache and --enable-hierarchical-cache are mutually exclusive")
    if args.enable_unified_cache_external_linker:
        raise Refusal(
            "ValueError", "--enable-lmcache and --enable-unified-cache-external-linker are mutually exclusive"
        )
    if args.disable_radix_cache:
        raise Refusal("ValueError", "--enable-lmcache requires radix cache to be enabled")
    algorithm = args.speculative_algorithm
    for refused, message in (
        (
            algorithm is not None and algorithm.upper() != "NONE",
            "LMCacheUnifiedRadixCache does not yet support speculative decoding",
        ),
        (attn_dp_enabled(args), "LMCacheUnifiedRadixCache does not yet support DP attention"),
        (
            args.dcp_size > 1,
            "--enable-lmcache with --dcp-size > 1 is not supported: LMCache has no DCP-aware index translation",
        ),
        (args.enable_streaming_session, "LMCacheUnifiedRadixCache does not yet support streaming sessions"),
    ):
        if refused:
            raise Refusal("NotImplementedError", message)
    if args.hicache_host_memory_mode == "buffer_only":
        raise Refusal("ValueError", "--hicache-host-memory-mode=buffer_only is a HiCache-only mode")
    if args.disaggregation_mode != "null":
        raise Refusal(
            "NotImplementedError",
            "LMCacheUnifiedRadixCache currently supports colocated prefill/decode scheduling only",
        )
