"""DeepEP: breakable prefill capture sizes are rounded up to multiples of eight."""

from __future__ import annotations

from engine.sglang.ladders import prefill_sizes
from engine.sglang.resolution import Refusal, Resolution

_DOCUMENTED_MAX_TOKENS = 2048


def run(r: Resolution) -> None:
    """Align the prefill sizes; where none are set yet, those up to 2,048 tokens are, and become the sizes."""
    state = r.graph["prefill"]
    if r.args.moe_a2a_backend != "deepep" or state.backend != "breakable":
        return
    try:
        if state.bs is None:
            sizes = prefill_sizes(r.release.ladders["prefill"], state.max_bs or _DOCUMENTED_MAX_TOKENS)
        else:
            sizes = state.bs
        aligned = sorted({((size + 7) // 8) * 8 for size in sizes})
    except TypeError as error:  # a size in the JSON that is no number
        raise Refusal("TypeError", str(error)) from None
    if aligned == sorted(sizes):
        return
    why = "DeepEP needs breakable prefill sizes that are multiples of eight"
    if not aligned:
        raise Refusal("IndexError", "list index out of range")
    r.set_graph("prefill", "bs", aligned, why)
    r.set_graph("prefill", "max_bs", aligned[-1], why)
