"""The all-to-all backend between expert-parallel ranks: what it implies, then its own rules."""

from __future__ import annotations

from collections.abc import Callable

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.moe import deepep, deepep_v2, flashinfer_a2a, flashinfer_megamoe, mori, pplx
from engine.sglang.steps.refusals import invalid, unguarded

_SPANS_TENSOR_PARALLEL = frozenset(
    {
        "megamoe",
        "deepep",
        "deepep_v2",
        "mooncake",
        "nixl",
        "ascend_fuseep",
        "flashinfer",
        "flashinfer_megamoe",
        "mori",
        "pplx",
    }
)
_RULES: dict[str, Callable[[Resolution], None]] = {
    "flashinfer_megamoe": flashinfer_megamoe.run,
    "deepep": deepep.run,
    "deepep_v2": deepep_v2.run,
    "flashinfer": flashinfer_a2a.run,
    "mori": mori.run,
    "pplx": pplx.run,
}


@unguarded
def run(r: Resolution) -> None:
    """Waterfill needs DeepEP or MegaMoE; expert parallelism spans the TP group; then the backend's rules."""
    args = r.args
    if not r.since(0, 5, 16):
        _deepep_waterfill(r)
    if args.enable_waterfill and args.moe_a2a_backend not in ("deepep", "megamoe"):
        r.warn(
            "WARNING: moe_a2a_backend is overridden to 'deepep' because Waterfill requires the DeepEP or MegaMOE "
            "backend."
        )
        r.set("moe_a2a_backend", "deepep", "--enable-waterfill needs DeepEP or MegaMoE")
    if not r.since(0, 5, 18) and environ.read(r, "SGLANG_OPT_USE_DEEPGEMM_MEGA_MOE"):
        r.set("moe_a2a_backend", "megamoe", "SGLANG_OPT_USE_DEEPGEMM_MEGA_MOE is set")
    backend = args.moe_a2a_backend
    if backend in _SPANS_TENSOR_PARALLEL:
        r.set("ep_size", args.tp_size, f"with {backend} the expert-parallel group is the tensor-parallel group")
    _shared_experts(r, backend)
    if args.enable_waterfill:
        r.set("enforce_shared_experts_fusion", True, "--enable-waterfill needs the shared experts fused")
    if backend != "flashinfer" and args.flashinfer_a2a_dispatch_type not in (None, "auto"):
        raise invalid("--flashinfer-a2a-dispatch-type requires --moe-a2a-backend flashinfer.")
    rules = _RULES.get(backend)
    if rules is not None:
        rules(r)
    if backend == "ascend_tp":
        r.set("moe_a2a_backend", "none", "it is the plain tensor-parallel path")


def _deepep_waterfill(r: Resolution) -> None:
    """Until 0.5.15 Waterfill knew DeepEP alone."""
    if not r.args.__dict__.get("enable_deepep_waterfill"):
        return
    why = "--enable-deepep-waterfill needs DeepEP"
    if r.args.moe_a2a_backend != "deepep":
        r.warn(
            "WARNING: moe_a2a_backend is overridden to 'deepep' because DeepEP Waterfill requires the DeepEP backend."
        )
        r.set("moe_a2a_backend", "deepep", why)
    r.set("enable_waterfill", True, why)


def _shared_experts(r: Resolution, backend: str) -> None:
    args = r.args
    if backend in ("deepep", "megamoe") and args.enable_waterfill:
        if args.disable_shared_experts_fusion:
            r.warn(
                "WARNING: disable_shared_experts_fusion is overridden to False because Waterfill requires shared "
                "expert "
                "fusion."
            )
            r.set("disable_shared_experts_fusion", False, "--enable-waterfill needs the shared experts fused")
    elif backend in ("flashinfer", "flashinfer_megamoe", "deepep_v2"):
        r.set("disable_shared_experts_fusion", True, f"{backend} keeps shared experts separate")
