"""Two families bring their own prefill graph defaults; the engine treats them as if a flag had been given (locked)."""

from __future__ import annotations

from engine.sglang.derived import connector_type, knows_architecture
from engine.sglang.resolution import Resolution

_INKLING = ("InklingForConditionalGeneration", "InklingForConditionalGenerationMTP")
_MUSE_GLIMMER = ("MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration")
_MUSE_GLIMMER_TOKENS = 512


def inkling(r: Resolution) -> None:
    """Inkling captures its prefill whole unless a flag (not the JSON) says otherwise."""
    if r.args.cuda_graph_backend_prefill is not None or r.args.disable_prefill_cuda_graph:
        return
    if connector_type(r.args.model_path) == "instance":
        return
    if r.model.arch in _INKLING and knows_architecture(r):
        r.set("cuda_graph_backend_prefill", "full", "Inkling's prefill graph is captured whole by default")


def muse_glimmer(r: Resolution) -> None:
    """Muse Glimmer captures prefill graphs up to 512 tokens."""
    if r.args.cuda_graph_max_bs_prefill is not None or connector_type(r.args.model_path) == "instance":
        return
    if r.model.arch in _MUSE_GLIMMER and knows_architecture(r):
        r.set("cuda_graph_max_bs_prefill", _MUSE_GLIMMER_TOKENS, "Muse Glimmer's prefill graphs stop at 512 tokens")
