"""Inkling: its pools' ratios, the extra-buffer strategy it asserts, and one of its two attention backends."""

from __future__ import annotations

from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution
from engine.sglang.steps.attention.default import unset
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    # Before 0.5.20 the two had a default of their own, and giving it counted as giving none.
    defaults = r.release.defaults
    out: Values = {
        name: 0.1
        for name in ("swa_full_tokens_ratio", "mamba_full_memory_ratio")
        if getattr(args, name) == defaults[name]
    }
    if args.mamba_radix_cache_strategy == "auto":
        out["mamba_radix_cache_strategy"] = "extra_buffer"
    if not args.disable_radix_cache and r.since(0, 5, 21):
        out["uses_mamba_radix_cache"] = True
    if unset(args):
        served = platform.is_sm100 or (platform.is_sm90 and r.since(0, 5, 22))
        out["attention_backend"] = "fa4" if served else "triton"
    return out


OVERRIDES = (
    Override(
        family="Inkling",
        look=look,
        architectures=("InklingForConditionalGeneration", "InklingForConditionalGenerationMTP"),
        since=(0, 5, 16),
    ),
)
