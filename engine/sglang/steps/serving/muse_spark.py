"""Muse Spark's environment defaults: graph pools, and a KV pool that is sized after capture."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import connector_type
from engine.sglang.resolution import Resolution

_DEFAULTS = {
    "SGLANG_ENABLE_CUDA_GRAPH_DEDUP": True,
    "SGLANG_ENABLE_GRAPH_POOL_BORROW": True,
    "SGLANG_ENABLE_GRAPH_POOL_PRECARVE": True,
    "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": True,
    "SGLANG_OPT_UNIFIED_CACHE_FREE_OUT_OF_WINDOW_SLOTS": False,
}
_ACTIVATION_SCALES = "SGLANG_FLASHINFER_NVFP4_PER_TOKEN_ACTIVATION"


def run(r: Resolution) -> None:
    """Set what the environment does not say; this is the first step that reads the model's config.json."""
    if connector_type(r.args.model_path) == "instance":
        return
    if "MuseSparkForConditionalGeneration" not in r.model.declared_architectures[:1]:
        return
    for name, value in _DEFAULTS.items():
        if not environ.is_set(r, name):
            environ.put(r, name, value)
    if r.args.quantization == "modelopt_fp4" and not environ.is_set(r, _ACTIVATION_SCALES):
        environ.put(r, _ACTIVATION_SCALES, True)
