"""ERNIE 4.5 VL splits its attention heads over the whole TP group."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """Nothing; DP attention is refused."""
    if attn_dp_enabled(r.args):
        raise Refusal(
            "ValueError",
            "ERNIE 4.5 VL MoE does not support DP attention: its attention heads are split over the full TP group.",
        )
    return {}


OVERRIDES = (
    Override(
        family="ERNIE 4.5 VL", look=look, architectures=("Ernie4_5_VLMoeForConditionalGeneration",), since=(0, 5, 22)
    ),
)
