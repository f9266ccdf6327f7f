"""What the engine asks about the GPU before it launches: the answers of its platform probes, from the table of GPUs.

Facts: ``sglang/srt/utils/common.py`` (0.5.23); each probe compares the compute capability's major number and asks for
a CUDA version that every image of these releases has.
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
    is_sm90: bool
    is_sm100: bool
    is_sm110: bool
    is_sm120: bool
    is_sm100_or_sm110: bool
    is_blackwell: bool


@cache
def _platform(capability: tuple[int, int]) -> Platform:
    major, minor = capability
    return Platform(
        major=major,
        minor=minor,
        sm=10 * major + minor,
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
