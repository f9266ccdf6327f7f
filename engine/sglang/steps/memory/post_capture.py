"""Whether the KV pool is sized after graph capture, so that no memory need be set aside for it beforehand."""

from __future__ import annotations

import math

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled, uses_mla
from engine.sglang.resolution import Resolution

_INDEPENDENT_DRAFTS = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "DFLASH", "DSPARK"})


def planned(r: Resolution) -> bool:
    """Whether this launch sizes its KV pool after capture: opt-in by environment, where nothing forbids it."""
    args = r.args
    if args.enable_kv_cache_sharding or not environ.read(r, "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"):
        return False
    if args.device != "cuda" or args.dcp_size != 1 or uses_mla(r):
        return False
    if args.prefill_only_disable_kv_cache or args.enable_memory_saver:
        return False
    if environ.read(r, "SGLANG_MOONCAKE_CUSTOM_MEM_POOL") is not None:
        return False
    if r.since(0, 5, 21):
        if args.disaggregation_transfer_backend == "mooncake" and environ.read(r, "MOONCAKE_PROTOCOL").lower() == "efa":
            return False
        if args.enable_unified_memory and not (r.since(0, 5, 22) and _unified_memory_allows(r)):
            return False
    elif args.kv_cache_dtype == "fp4_e2m1":
        return False
    if args.disaggregation_mode != "prefill" and r.graph["decode"].backend == "disabled":
        return False
    if not r.since(0, 5, 17):
        eager = args.disaggregation_mode != "decode" and r.graph["prefill"].backend == "disabled"
        if attn_dp_enabled(args) or eager:
            return False
    elif args.disaggregation_mode != "decode" and not _largest_prefill_is_captured(r):
        return False
    return not (r.model.is_deepseek_v4 or r.model.is_minimax_sparse)


def _unified_memory_allows(r: Resolution) -> bool:
    if not r.model.is_hybrid_swa or r.model.state_carrying is not None:
        return False
    return (r.args.speculative_algorithm or "").upper() not in _INDEPENDENT_DRAFTS


def _largest_prefill_is_captured(r: Resolution) -> bool:
    prefill = r.graph["prefill"]
    if prefill.backend == "disabled" or r.args.chunked_prefill_size <= 0:
        return False
    return max_prefill_buffer_tokens(r) <= max(prefill.bs or (0,))


def max_prefill_buffer_tokens(r: Resolution) -> int:
    """The most tokens of one prefill batch: the chunk; with dynamic chunking over pipelines it can grow."""
    chunk = max(r.args.chunked_prefill_size or 0, 0)
    if r.args.enable_dynamic_chunking and r.args.pp_size > 1 and chunk:
        return max(chunk, r.args.max_prefill_tokens or 0, math.ceil(chunk * 1.25))
    return chunk
