"""Embedding without a KV cache (``--prefill-only-disable-kv-cache``).

Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py`` (``validate_prefill_only_disable_kv_cache_args``,
``handle_prefill_only_disable_kv_cache``).
"""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Refusal, Resolution

_FLAG = "--prefill-only-disable-kv-cache"


def arguments(r: Resolution) -> None:
    """Refuse what would read or write the pool."""
    args = r.args
    if not args.prefill_only_disable_kv_cache:
        return
    if args.is_embedding and args.kv_cache_dtype == "fp4_e2m1" and not r.since(0, 5, 16):
        raise Refusal(
            "ValueError",
            f"{_FLAG} does not currently support --kv-cache-dtype=fp4_e2m1 because the FP4 pool uses a separate "
            "allocation path.",
        )
    for refused, message in (
        (
            not args.is_embedding,
            (
                f"{_FLAG} currently requires --is-embedding. Other prefill-only workloads may be supported in a future "
                "change once their attention paths stop reading or writing the paged KV cache."
            ),
        ),
        (
            args.kv_cache_dtype in ("nvfp4", "fp4_mx_block16"),
            (
                f"{_FLAG} does not currently support --kv-cache-dtype=nvfp4 or --kv-cache-dtype=fp4_mx_block16 "
                "because the FP4 pool uses a separate allocation path."
            ),
        ),
        (
            args.kv_cache_dtype == "mxfp8",
            (
                f"{_FLAG} does not currently support --kv-cache-dtype=mxfp8 because the MXFP8 pool stores separate "
                "scale-factor buffers."
            ),
        ),
        (
            args.chunked_prefill_size != -1,
            (
                f"{_FLAG} requires --chunked-prefill-size=-1 so the FA backend takes the fa_skip_kv_cache path; "
                "otherwise the pool would be touched between prefill chunks."
            ),
        ),
        (
            not args.disable_radix_cache,
            (
                f"{_FLAG} requires --disable-radix-cache because the radix cache indexes KV pool slots that no longer "
                "hold real data."
            ),
        ),
        (
            args.attn_cp_size > 1,
            (
                f"{_FLAG} is incompatible with --attn-cp-size > 1: the context-parallel attention path writes K/V to "
                "the pool via set_kv_buffer, which the no-op pool intentionally rejects."
            ),
        ),
        (
            args.enable_prefill_cp,
            (
                f"{_FLAG} is incompatible with --enable-prefill-cp: the prefill-CP path stages K/V through the paged "
                "cache, which the no-op pool does not support."
            ),
        ),
        (
            args.enable_hisparse,
            (
                f"{_FLAG} is incompatible with --enable-hisparse: HiSparse uses a dedicated pool family that is not "
                "the no-op MHA pool."
            ),
        ),
    ):
        if refused:
            raise Refusal("ValueError", message)


def backend(r: Resolution) -> None:
    """Only FlashAttention's prefill works without the pool."""
    if not r.args.prefill_only_disable_kv_cache:
        return
    prefill, _ = attention_backends(r.args)
    if prefill not in ("fa3", "fa4"):
        raise Refusal(
            "ValueError",
            f"{_FLAG} currently requires the FA prefill backend (fa3/fa4), but got prefill backend {prefill!r}. Other "
            "prefill-only workloads and backends may be supported in a future change.",
        )
