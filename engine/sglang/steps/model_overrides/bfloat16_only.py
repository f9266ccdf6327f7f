"""Mistral Large 3 and Pixtral run in bfloat16, whatever ``--dtype`` says."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(_: Resolution) -> Values:
    """bfloat16."""
    return {"dtype": "bfloat16"}


OVERRIDES = (
    Override(
        family="Mistral Large 3",
        look=look,
        architectures=("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"),
    ),
)
