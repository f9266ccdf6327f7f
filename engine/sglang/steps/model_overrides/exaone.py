"""EXAONE 4 and OLMo 2/3: no pool of their own for sliding windows, and an attention backend that has windows."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def _windowed(r: Resolution, *, backend: bool = True) -> Values:
    out: Values = {"disable_hybrid_swa_memory": True}
    r.warn(f"WARNING: Disabling hybrid SWA memory for {r.model.arch} as it is not yet supported.")
    if backend and r.args.attention_backend is None:
        platform = platform_of(r.hardware)
        out["attention_backend"] = "trtllm_mha" if platform.is_sm100 else "fa3" if platform.sm >= 80 else "triton"
    return out


def exaone(r: Resolution) -> Values:
    """Only where the model has sliding windows."""
    if r.model.hf.require("sliding_window_pattern") is None:
        return {}
    return _windowed(r, backend=r.since(0, 5, 22))


EXAONE = ("Exaone4ForCausalLM", "ExaoneMoEForCausalLM")
EXAONE_SINCE_0_5_22 = ("ExaoneMoeForCausalLM",)  # the same architecture's other spelling
OVERRIDES = (
    Override(family="EXAONE 4", look=exaone, architectures=EXAONE),
    Override(family="EXAONE 4", look=exaone, architectures=EXAONE_SINCE_0_5_22, since=(0, 5, 22)),
    Override(family="OLMo 2", look=_windowed, architectures=("Olmo2ForCausalLM",)),
)
