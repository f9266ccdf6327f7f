"""What a capture needs, what a worker is, and which queue brings the one to the other. Nothing here does anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.capture.options import CaptureOptions
from engine.errors import UnknownGpu
from engine.hardware import gpu_named

Device = Literal["any", "cpu", "gpu"]

CPU = "cpu"
"""The kind of a worker without a GPU: its captures are emulated."""

_DEVICES: Mapping[str, Device] = {"auto": "any", "cpu": "cpu", "cuda": "gpu"}


def kind_of(gpu: str | None) -> str:
    """The kind of a worker with a GPU of that name, as it stands in queue names; ``cpu`` without one.

    >>> kind_of("NVIDIA H200"), kind_of("Quadro RTX 8000"), kind_of(None)
    ('h200', 'quadro-rtx-8000', 'cpu')
    """
    if gpu is None:
        return CPU
    try:
        name = gpu_named(gpu).name
    except UnknownGpu:
        name = gpu
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64] or "gpu"


def queue_of(kind: str) -> str:
    """The broker's queue of a kind."""
    return f"capture.{kind}"


@dataclass(frozen=True, slots=True)
class Ability:
    """What a worker is: its kind, and how much memory (MiB) its device has; None: not known, and not asked about."""

    kind: str
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What a capture must run on.

    ``device``: ``any``, ``cpu`` or ``gpu``. ``gpu``: the kind that the request names; with ``gpu`` no other will do,
    with ``any`` it is preferred. ``memory_mib``: what the request asks for, in MiB of the device's memory.
    """

    device: Device = "any"
    gpu: str | None = None
    memory_mib: int | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any], options: CaptureOptions) -> Need:
        """The need of a capture request. Only a GPU that the request itself names binds the capture to a kind."""
        named = (request.get("hardware") or {}).get("gpu")
        gpu = kind_of(named) if named and options.device != "cpu" else None
        return cls(_DEVICES[options.device], gpu, options.memory_mib)

    def met_by(self, worker: Ability) -> bool:
        """Whether that worker can run the capture. A worker with a GPU can run on its CPU too."""
        if self.memory_mib is not None and worker.memory_mib is not None and worker.memory_mib < self.memory_mib:
            return False
        if self.device != "gpu":
            return True
        return worker.kind == self.gpu if self.gpu else worker.kind != CPU

    @property
    def missing(self) -> str:
        """The kind of worker that is looked for, as the API says it."""
        kind = self.gpu or self.device if self.device == "gpu" else self.device
        return kind if self.memory_mib is None else f"{kind} with {self.memory_mib} MiB"


ANYWHERE = Need()
"""Any worker will do."""


def kind_for(need: Need, workers: Iterable[Ability]) -> str | None:
    """The kind whose queue the capture is sent to: of the workers that can run it, the best; None where none can.

    A capture for any device goes to the GPU that the request names, then to any GPU; one for the CPU keeps GPUs free.
    """

    def worse(kind: str) -> tuple[bool, bool, str]:
        wants_gpu = need.device != "cpu"
        return kind != need.gpu, (kind == CPU) is wants_gpu, kind

    return min((worker.kind for worker in workers if need.met_by(worker)), key=worse, default=None)
