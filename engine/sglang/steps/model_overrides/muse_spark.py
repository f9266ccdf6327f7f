"""Muse Spark: TF32 products, an FP8 KV cache, a data-parallel vision encoder under attention DP."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.model_overrides.base import Override, Values


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args = r.args
    out: Values = {}
    if args.enable_tf32_matmul is None:
        out["enable_tf32_matmul"] = True
    if args.kv_cache_dtype == "auto":
        out["kv_cache_dtype"] = "fp8_e4m3"
    if args.mm_enable_dp_encoder is None and args.attn_dp_size > 1:
        out["mm_enable_dp_encoder"] = True
    return out


OVERRIDES = (
    Override(family="Muse Spark", look=look, architectures=("MuseSparkForConditionalGeneration",), since=(0, 5, 23)),
)
