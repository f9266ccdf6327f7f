"""Qwen4-Exp: the hybrid's backend on Blackwell, and pages for its compressed sparse attention."""

from __future__ import annotations

from engine.sglang.hf_config import HfConfig
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Refusal, Resolution
from engine.sglang.steps.model_overrides.base import Override, Values
from engine.sglang.steps.model_overrides.qwen3_5 import hybrid_on_sm100

_INDEXER = (
    "indexer_n_heads",
    "indexer_kv_heads",
    "indexer_head_dim",
    "indexer_budget",
    "indexer_compress_ratio",
)
_WIDTHS = (512, 2048)


def _compressed(text: HfConfig) -> bool:
    """Whether the model has the compressed indexer; a malformed one is refused."""
    if text.get("indexer_n_heads") is None:
        return False
    missing = [name for name in _INDEXER if text.get(name) is None]
    if missing:
        raise Refusal("ValueError", f"QSA config is missing required fields: {missing}")
    values = {name: int(text.get(name)) for name in _INDEXER}
    if any(value <= 0 for value in values.values()):
        raise Refusal("ValueError", f"QSA config values must be positive: {values}")
    if values["indexer_kv_heads"] != 1:
        raise Refusal("ValueError", "the QSA MQA operators require indexer_kv_heads=1")
    ratio, budget = values["indexer_compress_ratio"], values["indexer_budget"]
    if ratio < 2:
        raise Refusal("ValueError", f"QSA requires indexer_compress_ratio >= 2, got {ratio}")
    if budget % ratio != 0:
        raise Refusal(
            "ValueError", f"indexer_budget must be divisible by indexer_compress_ratio, got {budget} / {ratio}"
        )
    if budget // ratio not in _WIDTHS:
        raise Refusal(
            "ValueError",
            "fast_topk_v2 requires indexer_budget / indexer_compress_ratio to be one of "
            f"{sorted(_WIDTHS)}, got {budget // ratio}",
        )
    return True


def look(r: Resolution) -> Values:
    """What the family wants of this launch."""
    args, platform = r.args, platform_of(r.hardware)
    if args.disaggregation_mode != "null" and args.disaggregation_transfer_backend == "mori" and args.pp_size > 1:
        raise Refusal(
            "ValueError",
            "Qwen4-Exp PD with MORI requires --pp-size 1; MORI does not yet exchange the global QSA layer metadata "
            "needed to pair compact state descriptors across pipeline stages.",
        )
    if args.enable_unified_memory:
        raise Refusal("ValueError", "Qwen4-Exp does not support --enable-unified-memory yet")
    out: Values = {}
    if args.ple_offload_embedding is None:
        out["ple_offload_embedding"] = r.model.dtype == "bfloat16"
    text = r.model.hf.get("text_config")
    text = text if isinstance(text, HfConfig) else r.model.hf
    if text.get("num_experts") is not None and args.moe_dense_tp_size == 1:
        out["moe_dense_tp_size"] = None
    out |= hybrid_on_sm100(r)
    compressed = _compressed(text)
    if args.qsa_indexer_dtype == "fp8_e4m3":
        if not (platform.is_sm90 or platform.is_sm100):
            raise Refusal("ValueError", "--qsa-indexer-dtype fp8_e4m3 requires a CUDA SM90/SM100 GPU")
        if not compressed:
            raise Refusal("ValueError", "--qsa-indexer-dtype fp8_e4m3 requires the compressed QSA indexer")
    if compressed:
        out["page_size"] = 64
    return out


OVERRIDES = (
    Override(family="Qwen4-Exp", look=look, architectures=("Qwen4ExpForConditionalGeneration",), since=(0, 5, 20)),
)
