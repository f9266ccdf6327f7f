"""What the engine's probes say of the machine: one record a GPU.

Graphgate answers for CUDA machines with a current CUDA toolkit (12.8 or newer) and FlashInfer installed, as the engine's
own images have them. Source: SGLang 0.5.23, ``runtime_context.py`` and ``utils/common.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from engine.hardware import Gpu


@dataclass(frozen=True, slots=True)
class Platform:
    """The answers of the engine's probes; the names are the engine's. ``device_sm`` is 90 for compute capability 9.0."""

    device_sm: int
    device_capability: tuple[int, int]
    device_name: str
    is_sm80: bool
    is_sm90: bool
    is_sm100: bool
    is_sm110: bool
    is_sm120: bool
    is_sm100_or_sm110: bool
    is_blackwell: bool
    is_hopper_with_cuda_12_3: bool
    is_ampere_with_cuda_12_3: bool
    is_cuda: bool = True
    is_hip: bool = False
    is_npu: bool = False
    is_xpu: bool = False
    is_musa: bool = False
    is_mps: bool = False
    is_cpu: bool = False
    has_amx: bool = False
    has_flashinfer: bool = True


@cache
def platform_of(gpu: Gpu) -> Platform:
    """The probes' answers on a machine with that GPU."""
    major, minor = gpu.capability
    return Platform(
        device_sm=major * 10 + minor,
        device_capability=gpu.capability,
        device_name=gpu.product,
        is_sm80=major == 8,
        is_sm90=major == 9,
        is_sm100=major == 10,
        is_sm110=major == 11,
        is_sm120=major == 12,
        is_sm100_or_sm110=major in (10, 11),
        is_blackwell=major in (10, 11, 12),
        is_hopper_with_cuda_12_3=major == 9,
        is_ampere_with_cuda_12_3=major == 8,
    )
