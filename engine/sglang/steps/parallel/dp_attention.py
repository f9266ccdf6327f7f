"""``--dp-size N --enable-dp-attention`` means ``--attn-dp-size N``.

Releases before 0.5.22 have no ``--attn-dp-size``; the steps speak of it all the same, and what is reported of such a
release is ``dp_size`` again.
"""

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


def widths(r: Resolution) -> None:
    """Before 0.5.22: the width where the steps look for it; the switch stays as it is."""
    args = r.args
    if args.enable_dp_attention:
        r.fill("attn_dp_size", args.dp_size)
        r.fill("dp_size", 1)
