"""A launch found in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.launch import ModelRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLaunch:
    """One launch and where it stands.

    ``owner`` is "Kind namespace/name" or "service NAME"; ``path`` the place of the container inside the file;
    ``release`` what an annotation or the image's tag says; ``gpu_product`` the GPU that an annotation or the node
    selection names, ``gpu_count`` the GPUs of the container's limits. ``unknown`` lists what stands in the arguments
    and has its value only in the cluster, as ``$(KEY)``; ``unread`` the engine's variables of which that is true, and
    ``envFrom`` where there may be more. ``problem`` says why the launch cannot be read; the rest is then empty.
    """

    owner: str
    container: str
    path: str
    model: ModelRef | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    release: str | None = None
    gpu_product: str | None = None
    gpu_count: int | None = None
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    problem: str | None = None
