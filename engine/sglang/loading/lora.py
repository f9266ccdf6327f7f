"""Adapters whose kernels cannot run inside a prefill graph."""

from __future__ import annotations

from engine.sglang.derived import attn_dp_enabled
from engine.sglang.resolution import Resolution

_CAPTURABLE = ("triton", "csgmv", "triton_v2")
_EXPERT_PROJECTIONS = frozenset(("all", "gate_proj", "up_proj", "down_proj", "gate_up_proj"))


def run(r: Resolution) -> str | None:
    """The adapters' backend, attention data parallelism, adapters on experts outside full or breakable capture."""
    args = r.args
    if not (args.enable_lora if args.enable_lora is not None else args.lora_paths):
        return None
    if args.lora_backend not in _CAPTURABLE:
        return f"the LoRA backend {args.lora_backend} cannot run inside a prefill graph"
    if attn_dp_enabled(args):
        return "LoRA under attention data parallelism prefills eagerly"
    backend = r.graph["prefill"].backend
    captured = r.since(0, 5, 20) and backend in ("full", "breakable")
    if not captured and r.model.facts.num_experts and _EXPERT_PROJECTIONS & set(args.lora_target_modules or ()):
        return f"LoRA on experts prefills eagerly under the {backend} backend"
    return None
