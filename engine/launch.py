"""What was asked: one launch of one model by one engine release on one kind of GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["decode", "prefill"]
PHASES: tuple[Phase, ...] = ("decode", "prefill")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """Where the model's config.json comes from: exactly one of ``id``, ``path`` and ``config`` is set.

    ``id`` is an "org/name" on the configured hub, at ``revision`` (branch, tag or commit; None: the default branch);
    ``path`` a local folder, or a config.json, below the allowed roots; ``config`` the parsed config.json itself.
    """

    id: str | None = None
    revision: str | None = None
    path: str | None = None
    config: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """A short name for messages."""
        return self.id or self.path or "the given config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch as it was asked for, before anything is resolved.

    ``arguments`` is the engine's command line without the program and without ``--model-path``, in the operator's own
    words and order. ``defaults`` is what the platform would like where the operator said nothing, in the shape of the
    engine's ``--cuda-graph-config`` JSON: it is never locked. ``gpu_count`` is the number of GPUs on the node.
    """

    model: ModelRef
    engine: str = "sglang"
    release: str = "0.5.23"
    gpu: str = "H200"
    gpu_count: int = 8
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
