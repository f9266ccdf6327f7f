"""``--device cpu`` on a GPU node: the host's processor decides the attention backend."""

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
