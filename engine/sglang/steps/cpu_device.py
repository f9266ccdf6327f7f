"""``--device cpu`` on a GPU node: the host's processor decides the attention backend.

The kernels for AMX are in the engine's CPU build only, so on a GPU node an x86 host falls back to PyTorch's attention,
after the point where PyTorch's attention would have switched the graphs off.
"""

from __future__ import annotations

from engine.sglang.resolution import Resolution

_GRACE = frozenset({"GB200", "GB300", "GH200"})


def run(r: Resolution) -> None:
    """Attention and sampling for a CPU server: AMX on x86 hosts, PyTorch's own on Arm hosts (the Grace superchips)."""
    if r.args.device != "cpu":
        return
    if r.args.attention_backend is None:
        backend = "torch_native" if r.hardware.name in _GRACE else "intel_amx"
        r.set("attention_backend", backend, "the CPU's own attention backend", layer="engine-default")
    r.set("sampling_backend", "pytorch", "a CPU server samples with PyTorch")


def fallback(r: Resolution) -> None:
    """PyTorch's attention where AMX is not to be had."""
    if r.args.device == "cpu" and r.args.attention_backend == "intel_amx":
        r.warn("WARNING: The current platform does not support Intel AMX, will fallback to torch_native backend.")
        r.set("attention_backend", "torch_native", "the engine's CUDA build has no AMX kernels")
