"""The largest context of a prefill graph: whole pages, and no more than the model's context."""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution


def run(r: Resolution) -> None:
    """Round ``prefill.max_context_size`` up to whole pages; refuse what is not positive or exceeds the model."""
    requested = r.graph["prefill"].max_context_size
    if requested is None:
        return
    page = r.args.page_size
    if page is None or page <= 0:
        raise Refusal("AssertionError", "page_size must be resolved before prefill CUDA graph max context size")
    try:
        if requested <= 0:
            raise Refusal("ValueError", "--cuda-graph-prefill-max-context must be a positive integer")
        aligned = int((requested + page - 1) // page * page)
    except TypeError as error:  # a value in the JSON that is no number
        raise Refusal("TypeError", str(error)) from None
    longest = r.model.context_len
    if longest is not None and 0 < longest < aligned:
        raise Refusal(
            "ValueError",
            f"--cuda-graph-prefill-max-context exceeds the model context length: aligned size {aligned} > {longest}",
        )
    r.set_graph("prefill", "max_context_size", aligned, f"rounded up to whole pages of {page} tokens")
