"""Small capture jobs that the tests share."""

from __future__ import annotations

from engine.capture.job import CaptureJob, CaptureOptions, PhasePlan
from engine.capture.options import Allocation
from engine.capture.shape import ModelShape
from engine.models.facts import LayerKind

LLAMA: tuple[LayerKind, ...] = ("attention", "attention")
QWEN3_NEXT: tuple[LayerKind, ...] = ("gdn", "gdn", "gdn", "attention")


def job(
    kinds: tuple[LayerKind, ...] = LLAMA,
    *,
    prefill: str = "full",
    decode: str = "full",
    prefill_sizes: tuple[int, ...] = (4, 16),
    decode_sizes: tuple[int, ...] = (1, 2, 4),
    allocation: Allocation = "decode-owned",
    timeout_s: float = 60.0,
    memory_mib: int | None = None,
    sizes: tuple[int, ...] | None = None,
    max_requests: int = 4,
    **shape: int,
) -> CaptureJob:
    """A job over a tiny model of these layers."""
    return CaptureJob(
        id="test",
        shape=ModelShape(architecture="TestForCausalLM", family="", layer_kinds=kinds, **shape),  # type: ignore[arg-type]  # only sizes are given
        plans=(
            PhasePlan(phase="decode", backend=decode, sizes=decode_sizes),
            PhasePlan(phase="prefill", backend=prefill, sizes=prefill_sizes, max_requests=max_requests),
        ),
        options=CaptureOptions(
            allocation=allocation, device="cpu", timeout_s=timeout_s, memory_mib=memory_mib, sizes=sizes
        ),
    )


def slow_job(*, timeout_s: float = 60.0) -> CaptureJob:
    """A job that takes far longer than any test waits: scans of thousands of tokens."""
    return job(("gdn", "gdn"), allocation="per-phase", sizes=(4000,), timeout_s=timeout_s)
