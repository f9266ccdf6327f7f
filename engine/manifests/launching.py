"""From a found launch to one that can be examined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import InvalidLaunch
from engine.launch import Launch
from engine.launch_forms import DEFAULT_GPU, DEFAULT_GPU_COUNT, DEFAULT_RELEASE, launch_from_arguments
from engine.manifests.found import FoundLaunch
from engine.manifests.unknown_values import without_unknown
from engine.sglang.releases import release_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What holds where a manifest says nothing. ``environment`` is put over the container's own."""

    release: str = DEFAULT_RELEASE
    gpu: str = DEFAULT_GPU
    gpu_count: int = DEFAULT_GPU_COUNT
    environment: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] | None = None


def launch_of(found: FoundLaunch, silence: Silence, *, release: str | None = None) -> Launch:
    """The launch, of ``release`` where that is given, whatever the manifest says.

    Raises:
        InvalidLaunch: it cannot be read, or a value that matters is known in the cluster only.
        UnknownRelease: the release is not covered.
    """
    if found.problem is not None or found.model is None:
        raise InvalidLaunch(found.problem or "No model is named.", field=None)
    chosen = release or found.release or silence.release
    return launch_from_arguments(
        found.model,
        without_unknown(found.arguments, found.unknown, release_named(chosen)),
        release=chosen,
        gpu=found.gpu_product or silence.gpu,
        gpu_count=found.gpu_count or silence.gpu_count,
        environment={**found.environment, **silence.environment},
        defaults=silence.defaults,
    )
