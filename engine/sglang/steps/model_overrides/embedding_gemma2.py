"""EmbeddingGemma 2: no radix cache, Triton where no backend is named."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    out: Values = {"disable_radix_cache": True}
    if r.args.attention_backend is None:
        out["attention_backend"] = "triton"
    return out


OVERRIDES = (Override(family="EmbeddingGemma 2", look=look, architectures=("EmbeddingGemma2Model",), since=(0, 5, 22)),)
