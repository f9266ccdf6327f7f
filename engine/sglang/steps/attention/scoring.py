"""Multi-item scoring: one prefill with a mask of its own, so no graphs, no radix cache, no chunks.

Source: SGLang 0.5.23, ``arg_groups/attention_hook.py`` (``handle_multi_item_scoring``).
"""

from __future__ import annotations

from engine.launch import PHASES
from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Refusal, Resolution


def run(r: Resolution) -> None:
    """Switch off what does not go with ``--enable-mis`` and demand FlashInfer."""
    if not r.args.enable_mis:
        return
    why = "--enable-mis scores several items in one masked prefill"
    if r.graph["decode"].backend != "disabled":
        r.warn("WARNING: CUDA graph is disabled because --enable-mis is set.")
    for phase in PHASES:
        r.set_graph(phase, "backend", "disabled", why)
    if not r.args.disable_radix_cache:
        r.warn("WARNING: Radix cache is disabled because --enable-mis is set.")
        r.set("disable_radix_cache", True, why)
    if r.args.chunked_prefill_size != -1:
        r.warn("WARNING: Chunked prefill is disabled because --enable-mis is set.")
        r.set("chunked_prefill_size", -1, why)
    prefill, decode = attention_backends(r.args)
    if (prefill, decode) != ("flashinfer", "flashinfer"):
        raise Refusal(
            "AssertionError",
            "Multi-item scoring requires flashinfer attention backend for custom attention mask support. "
            "Please set --attention-backend flashinfer when using --enable-mis. "
            f"Current backends: prefill={prefill}, decode={decode}",
        )
