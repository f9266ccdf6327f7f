"""A launch found in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.launch import ModelRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLaunch:
    """One launch and where it stands.

    ``owner`` is "Kind namespace/name" or "service NAME"; ``path`` the place of the container inside the file;
    ``gpu_product`` the product that the node selection names, ``gpu_count`` the GPUs of the container's limits.
    ``problem`` says why the launch cannot be read; the rest is then empty.
    """

    owner: str
    container: str
    path: str
    model: ModelRef | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu_product: str | None = None
    gpu_count: int | None = None
    problem: str | None = None
