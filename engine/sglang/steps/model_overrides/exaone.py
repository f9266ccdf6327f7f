"""EXAONE 4 and OLMo 2/3: no pool of their own for sliding windows, and an attention backend that has windows."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def _windowed(r: Resolution) -> Values:
    out: Values = {"disable_hybrid_swa_memory": True}
    r.warn(f"WARNING: Disabling hybrid SWA memory for {r.model.arch} as it is not yet supported.")
    if r.args.attention_backend is None:
        platform = platform_of(r.hardware)
        out["attention_backend"] = "trtllm_mha" if platform.is_sm100 else "fa3" if platform.sm >= 80 else "triton"
    return out


def exaone(r: Resolution) -> Values:
    """Only where the model has sliding windows."""
    return {} if r.model.hf.require("sliding_window_pattern") is None else _windowed(r)


EXAONE = ("Exaone4ForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM")
OVERRIDES = (
    Override(family="EXAONE 4", look=exaone, architectures=EXAONE),
    Override(family="OLMo 2", look=_windowed, architectures=("Olmo2ForCausalLM",)),
)
