"""GLM-5-Next before 0.5.22: its breakable prefill graph stops at 4,096 tokens.

Source: SGLang 0.5.21, ``arg_groups/cuda_graph_hook.py`` (``apply_glm5_chunked_prefill_default``,
``apply_glm5_prefill_cuda_graph_policy``).
"""

from __future__ import annotations

from engine.sglang.ladders import prefill_sizes
from engine.sglang.resolution import Resolution
from engine.sglang.steps.graph import deepep

_TOKENS = 4096


def _applies(r: Resolution) -> bool:
    return r.graph["prefill"].backend == "breakable" and "Glm5NextForConditionalGeneration" in r.model.architectures


def chunk(r: Resolution) -> None:
    """A breakable prefill graph that was asked for by name brings its chunk size."""
    if ("prefill", "backend") in r.locked and r.args.chunked_prefill_size is None and _applies(r):
        r.set("chunked_prefill_size", _TOKENS, "GLM-5-Next's captured prefill", layer="engine-default")


def capture_sizes(r: Resolution) -> None:
    """Sizes that nobody set end at 4,096 tokens."""
    if not _applies(r) or {("prefill", "max_bs"), ("prefill", "bs")} & r.locked:
        return
    why = "GLM-5-Next captures prefill up to 4,096 tokens"
    r.set_graph("prefill", "max_bs", _TOKENS, why, layer="engine-default")
    r.set_graph("prefill", "bs", prefill_sizes(r.release.ladders["prefill"], _TOKENS), why, layer="engine-default")
    deepep.run(r)
