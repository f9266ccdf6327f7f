"""Hybrid families that take another attention backend than the default on datacenter Blackwell, and nothing else."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def _on_sm100(r: Resolution, backend: str) -> Values:
    if platform_of(r.hardware).is_sm100 and r.args.attention_backend is None:
        return {"attention_backend": backend}
    return {}


def triton(r: Resolution) -> Values:
    """Triton on SM100."""
    return _on_sm100(r, "triton")


def flashinfer(r: Resolution) -> Values:
    """FlashInfer on SM100."""
    return _on_sm100(r, "flashinfer")


def granite(r: Resolution) -> Values:
    """FlashInfer on SM100 where the model has Mamba layers."""
    return _on_sm100(r, "flashinfer") if "mamba" in (r.model.hf.get("layer_types") or ()) else {}


OVERRIDES = (
    Override(
        family="Falcon-H1 and Jet",
        look=triton,
        architectures=("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration"),
    ),
    Override(
        family="MiniCPM-V 4.6",
        look=triton,
        architectures=("MiniCPMV4_6ForConditionalGeneration",),
    ),
    Override(
        family="MiniCPM-V 4.7",
        look=triton,
        architectures=("MiniCPMV4_7ForConditionalGeneration",),
        since=(0, 5, 23),
    ),
    Override(family="LFM2", look=flashinfer, architectures=("Lfm2ForCausalLM",)),
    Override(family="LFM2 MoE", look=flashinfer, architectures=("Lfm2MoeForCausalLM",), since=(0, 5, 17)),
    Override(family="Granite 4 hybrid", look=granite, architectures=("GraniteMoeHybridForCausalLM",)),
)
