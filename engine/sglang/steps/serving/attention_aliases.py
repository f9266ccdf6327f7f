"""Attention backends that were renamed, and what the old names implied."""

from __future__ import annotations

from engine.sglang.resolution import Resolution

_COMPRESSED = {"compressed": "dsv4"}
_ALIASES = {**_COMPRESSED, "tokenspeed_mla": "cutedsl_mla"}
_FIELDS = (
    "attention_backend",
    "decode_attention_backend",
    "prefill_attention_backend",
    "speculative_draft_attention_backend",
)


def run(r: Resolution) -> None:
    """The new names; ``tokenspeed_mla`` meant an FP8 KV cache and verification on the decode kernel."""
    args = r.args
    aliases = _ALIASES if r.since(0, 5, 23) else _COMPRESSED
    if not any(getattr(args, field) in aliases for field in _FIELDS):
        return
    tokenspeed = aliases is _ALIASES and "tokenspeed_mla" in (args.attention_backend, args.decode_attention_backend)
    for field in _FIELDS:
        old = getattr(args, field)
        new = aliases.get(old)
        if new is None:
            continue
        r.warn(f"WARNING: --{field.replace('_', '-')}={old} is deprecated; use '{new}' instead.")
        if field == "prefill_attention_backend" and new == "cutedsl_mla":
            new = "trtllm_mla"  # the other is for decode only
        r.set(field, new, f"the new name of {old}")
    if not tokenspeed:
        return
    if args.kv_cache_dtype != "fp8_e4m3":
        r.warn("WARNING: tokenspeed_mla required FP8 KV; setting --kv-cache-dtype=fp8_e4m3.")
        r.set("kv_cache_dtype", "fp8_e4m3", "tokenspeed_mla meant this")
    if args.speculative_algorithm is not None and args.speculative_attention_mode == "prefill":
        r.set("speculative_attention_mode", "decode", "tokenspeed_mla meant this")
