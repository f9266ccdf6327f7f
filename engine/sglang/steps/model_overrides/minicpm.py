"""MiniCPM SALA: sparse and lightning attention without radix cache, on its own backends."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import attn_dp_enabled
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values

_FIELDS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
_SPARSE = ("minicpm_flashattn", "minicpm_flashinfer")


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, hf, blackwell = r.args, r.model.hf, platform_of(r.hardware).is_blackwell
    if attn_dp_enabled(args):
        raise Refusal("ValueError", "MiniCPM does not support DP attention")
    sparse = bool(hf.get("has_minicpm_sparse_attention", False))
    out: Values = {}
    if sparse or hf.get("has_lightning_layers", False):
        if args.enable_hierarchical_cache:
            raise Refusal("ValueError", "MiniCPM SALA does not support hierarchical cache")
        out["disable_radix_cache"] = True
    if environ.read(r, "SGLANG_MINICPM_FORCE_DENSE"):
        dense = {"minicpm_flashattn": "fa4" if blackwell else "fa3", "minicpm_flashinfer": "flashinfer"}
        out |= {name: dense[getattr(args, name)] for name in _FIELDS if getattr(args, name) in dense}
    elif sparse:
        used = unset(args) or any(getattr(args, name) in _SPARSE for name in _FIELDS)
        if used and args.disaggregation_mode != "null":
            raise Refusal("ValueError", "MiniCPM sparse attention does not support PD disaggregation")
        if unset(args):
            out["attention_backend"] = "minicpm_flashinfer" if blackwell else "minicpm_flashattn"
    return out


OVERRIDES = (
    Override(family="MiniCPM SALA", look=look, architectures=("MiniCPMForCausalLM", "MiniCPMSALAForCausalLM")),
)
