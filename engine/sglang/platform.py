"""What the engine's probes say of the machine: one record a GPU.

Graphgate answers for CUDA machines with a current CUDA toolkit (12.8 or newer) and FlashInfer installed, as the
engine's own images have them. Source: SGLang 0.5.23, ``runtime_context.py`` and ``utils/common.py``: a probe compares
the compute capability's major number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from engine.hardware import Gpu


@dataclass(frozen=True, slots=True)
class Platform:
    """The engine's platform probes for one GPU. ``sm`` is the capability as one number (90 for 9.0)."""

    major: int
    minor: int
    sm: int
    is_sm80: bool
    is_sm90: bool
    is_sm100: bool
    is_sm110: bool
    is_sm120: bool
    is_sm100_or_sm110: bool
    is_blackwell: bool
    is_cuda: bool = True
    is_hip: bool = False
    is_npu: bool = False
    is_xpu: bool = False
    is_musa: bool = False
    is_mps: bool = False
    has_flashinfer: bool = True

    @property
    def device_sm(self) -> int:
        """The engine's name for ``sm``."""
        return self.sm

    @property
    def device_capability(self) -> tuple[int, int]:
        """The compute capability."""
        return self.major, self.minor

    @property
    def is_hopper_with_cuda_12_3(self) -> bool:
        """Hopper; the toolkit is always recent enough here."""
        return self.is_sm90


@cache
def _platform(capability: tuple[int, int]) -> Platform:
    major, minor = capability
    return Platform(
        major=major,
        minor=minor,
        sm=10 * major + minor,
        is_sm80=major == 8,
        is_sm90=major == 9,
        is_sm100=major == 10,
        is_sm110=major == 11,
        is_sm120=major == 12,
        is_sm100_or_sm110=major in (10, 11),
        is_blackwell=major in (10, 11, 12),
    )


def platform_of(gpu: Gpu) -> Platform:
    """The probes' answers for this GPU; cached by compute capability."""
    return _platform(gpu.capability)
