"""The contract of a recorder, and the points at which a breakable graph is cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from engine.capture.report import Claim

Run = Callable[[], Tensor]
WARMUPS = 2
"""Eager runs before a capture, as SGLang's runners do (0.5.23, model_executor/runner_backend)."""


class CaptureRefused(RuntimeError):
    """The forward pass did something that a graph cannot record."""


class Graph(Protocol):
    """A recorded forward pass. ``bytes``: memory it holds; ``operators``: how many it runs, where that is known."""

    bytes: int
    operators: int | None
    segments: int

    def replay(self) -> Tensor:
        """Run it again on whatever its inputs hold now; the result lies in the graph's own output."""


class Recorder(ABC):
    """Records forward passes; the graphs of one recorder share one memory pool."""

    name: ClassVar[str]
    claim: ClassVar[Claim]

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def capture(self, run: Run, *, breaks: bool) -> Graph:
        """Warm up, then record ``run``. ``breaks``: cut at every :func:`break_here`, which then runs eagerly.

        Raises:
            CaptureRefused: ``run`` reads a value back to the host, or makes a shape depend on one.
        """
        self.warm_up(run)
        self.synchronize()
        return self.record(run, breaks=breaks)

    def warm_up(self, run: Run) -> None:
        """Run eagerly, so that whatever is made on first use exists before the capture."""
        for _ in range(WARMUPS):
            run()

    @abstractmethod
    def record(self, run: Run, *, breaks: bool) -> Graph:
        """Record ``run``, warm."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for the device."""


_breaker: Callable[[Run], Tensor] | None = None


@contextmanager
def cutting(breaker: Callable[[Run], Tensor]) -> Iterator[None]:
    """While this lasts, :func:`break_here` hands its function to ``breaker``."""
    global _breaker  # one capture at a time in a worker process
    _breaker = breaker
    try:
        yield
    finally:
        _breaker = None


def break_here(run: Run) -> Tensor:
    """Run ``run``; in a breakable capture, outside the graph, at capture and at every replay."""
    return run() if _breaker is None else _breaker(run)
