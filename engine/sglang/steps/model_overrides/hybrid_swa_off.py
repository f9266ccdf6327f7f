"""Gemma 2 and 3 keep sliding windows in the ordinary KV pool."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """No pool of their own for sliding windows."""
    r.warn(f"WARNING: Disable hybrid SWA memory for {r.model.arch} as it is not yet supported.")
    return {"disable_hybrid_swa_memory": True}


OVERRIDES = (
    Override(
        family="Gemma 2 and 3",
        look=look,
        architectures=(
            "Gemma2ForCausalLM",
            "Gemma3ForCausalLM",
            "Gemma3ForConditionalGeneration",
            "Gemma3nForCausalLM",
            "Gemma3nForConditionalGeneration",
        ),
    ),
)
