"""MOSS-VL: FlashInfer prefill for its cross-attention mask."""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    if unset(r.args):
        return {"prefill_attention_backend": "flashinfer"}
    if attention_backends(r.args)[0] != "flashinfer":
        raise Refusal(
            "AssertionError",
            "MossVLForConditionalGeneration requires flashinfer prefill attention backend for cross-attention custom "
            "mask support.",
        )
    return {}


OVERRIDES = (Override(family="MOSS-VL", look=look, architectures=("MossVLForConditionalGeneration",)),)
