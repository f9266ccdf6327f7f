"""Qwen3-VL on large Hopper GPUs: decode graphs reach up to the running limit, so that no full batch runs eager."""

from __future__ import annotations

from engine.sglang.derived import gpu_memory_mib
from engine.sglang.platform import platform_of
from engine.sglang.resolution import Resolution

_MODEL_TYPES = frozenset({"qwen3_vl", "qwen3_vl_moe"})
_LARGE_MIB = 60 * 1024
_LIMIT = 512


def is_large_hopper_qwen3_vl(r: Resolution) -> bool:
    """Whether this is Qwen3-VL on a Hopper GPU with at least 60 GiB."""
    return (
        platform_of(r.hardware).is_sm90
        and gpu_memory_mib(r) >= _LARGE_MIB
        and bool(r.model.is_multimodal)
        and r.model.model_type in _MODEL_TYPES
    )


def expand_decode_to_running_limit(r: Resolution) -> None:
    """Raise the largest decode graph to ``--max-running-requests`` (up to 512) where it was not given."""
    limit, largest = r.args.max_running_requests, r.graph["decode"].max_bs
    if limit is None or limit > _LIMIT or largest is None or largest >= limit:
        return
    if ("decode", "max_bs") in r.locked or ("decode", "bs") in r.locked or not is_large_hopper_qwen3_vl(r):
        return
    r.set_graph("decode", "max_bs", limit, "Qwen3-VL on large Hopper GPUs captures up to --max-running-requests")
