"""Which recurrent mixer a config means where it only says "mamba" or "linear attention"."""

from __future__ import annotations

from engine.models.facts import LayerKind
from engine.models.families.base import Subject

_LIGHTNING = ("minimax", "minimax_m1", "minimax_text_01", "bailing_moe_linear", "bailing_moe_linear_v2", "minicpm")
_KDA = ("kimi_linear", "kimi_k3", "glm5_next", "glm5_next_text")
_MAMBA2 = ("mamba2", "nemotron_h", "bamba", "granitemoehybrid", "zamba2", "falcon_h1", "plamo2")
_MAMBA2_FIELDS = ("mamba_n_heads", "mamba_num_heads", "mamba_headdim", "mamba_head_dim", "mamba_d_head")


def mamba_of(subject: Subject) -> LayerKind:
    """Mamba-2 where the state has heads, Mamba-1 where it has channels only (Jamba)."""
    if subject.is_a(*_MAMBA2) or any(subject.text.has(name) for name in _MAMBA2_FIELDS):
        return "mamba2"
    return "mamba"


def linear_of(subject: Subject) -> LayerKind:
    """The linear attention of the family: gated delta rule, Kimi delta attention, or lightning attention.

    Bailing's hybrids turned from lightning attention to KDA with their short convolution
    (``sglang/srt/configs/bailing_hybrid.py``, ``use_kda``, 0.5.23).
    """
    text = subject.text
    if subject.is_a(*_KDA) or text.has("linear_attn_config"):
        return "kda"
    if subject.is_a(*_LIGHTNING):
        return "lightning"
    if subject.is_a("bailing_hybrid", "bailing_moe_v3", "bailing_moe_v3_vl"):
        return "kda" if text.has("short_conv_kernel_size") else "lightning"
    return "mamba2" if subject.is_a("granitemoehybrid", "bamba") else "gdn"
