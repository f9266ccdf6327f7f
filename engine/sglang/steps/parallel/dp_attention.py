"""``--dp-size N --enable-dp-attention`` means ``--attn-dp-size N``."""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """Move the width to where every later step looks for it; ``dp_size`` counts replicas again."""
    args = r.args
    if not args.enable_dp_attention:
        return
    why = "--enable-dp-attention is the old spelling of --attn-dp-size"
    if args.attn_dp_size == 1:
        width = args.dp_size
        r.set("attn_dp_size", width, why)
        r.set("dp_size", 1, why)
    r.set("enable_dp_attention", False, why)
