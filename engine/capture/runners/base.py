"""What the two runners share: one graph a size, captured largest first, padded to, replayed."""

from __future__ import annotations

import bisect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.recorders.base import Graph, Recorder
from engine.capture.runners.model_runner import ModelRunner

Emit = Callable[..., None]
"""``emit(event name, **data)``: tells the supervisor."""

BREAKING_BACKENDS = {"breakable", "tc_piecewise"}
BACKENDS = {"full", *BREAKING_BACKENDS}


@dataclass(frozen=True, slots=True)
class Captured:
    """One captured size; ``capture_s`` in seconds, warm-ups included."""

    size: int
    graph: Graph
    capture_s: float


class CudaGraphRunner(ABC):
    """Subclasses choose buffers and batches; the way of a size is here."""

    phase: str

    def __init__(
        self, runner: ModelRunner, *, backend: str, sizes: Sequence[int], recorder: Recorder, emit: Emit
    ) -> None:
        self.runner = runner
        self.breaks = backend in BREAKING_BACKENDS
        self.sizes = sorted(sizes)
        self.recorder = recorder
        self.emit = emit
        self.captured: dict[int, Captured] = {}
        self.output: Tensor | None = None

    def capture(self) -> None:
        """Capture every size, largest first, so that the smaller ones reuse the larger ones' memory."""
        self.emit(f"{self.phase}.capture.begin", sizes=self.sizes)
        for size in reversed(self.sizes):
            begun = time.perf_counter()
            graph = self.capture_one_size(size)
            self.captured[size] = Captured(size, graph, time.perf_counter() - begun)
            done = {"n": len(self.captured), "of": len(self.sizes)}
            self.emit(f"{self.phase}.capture.size", size=size, seconds=self.captured[size].capture_s, **done)
        self.emit(f"{self.phase}.capture.end")

    @torch.no_grad()
    def capture_one_size(self, size: int) -> Graph:
        """Point the backend at the static buffers, then record the forward pass over them.

        Every graph of the phase ends by writing its result into the first rows of one output buffer, the largest
        graph's, as the engine's full backend does (SGLang 0.5.23, model_executor/runner_backend).
        """
        batch = self.dummy_batch(size)
        backend = self.runner.attn_backend
        if self.breaks:
            backend.init_forward_metadata(batch)
        else:
            backend.prepare_capture(batch)
        if self.output is None:
            self.output = torch.empty_like(self.forward(batch))
        rows = self.output[: self.rows(batch)]
        return self.recorder.capture(lambda: rows.copy_(self.forward(batch)), breaks=self.breaks)

    def padded_size(self, raw: int) -> int | None:
        """The smallest captured size that holds ``raw`` (tokens or requests), or None: then the pass runs eagerly."""
        i = bisect.bisect_left(self.sizes, raw)
        return self.sizes[i] if i < len(self.sizes) else None

    @abstractmethod
    def can_run_graph(self, batch: ForwardBatch) -> bool:
        """Whether a captured size holds this batch."""

    @abstractmethod
    def dummy_batch(self, size: int) -> ForwardBatch:
        """The batch that a graph of this size is captured over: static buffers, no live request."""

    @abstractmethod
    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        """Copy a live batch into the static buffers of ``size``, padding cleared; the padded batch."""

    @abstractmethod
    def forward(self, batch: ForwardBatch) -> Tensor:
        """What a graph of this phase spans."""

    @torch.no_grad()
    def replay(self, batch: ForwardBatch, size: int | None = None) -> Tensor:
        """Run a live batch through the graph of the next captured size, or of ``size``; only its own rows.

        Raises:
            ValueError: no captured size holds it.
        """
        if size is None:
            size = self.padded_size(self.rows(batch))
        if size is None or size not in self.captured or size < self.rows(batch) or not self.can_run_graph(batch):
            raise ValueError(
                f"No {self.phase} graph of {self.sizes} holds {self.rows(batch)} rows of {batch.batch_size} requests."
            )
        self._run(size, self.load_batch(batch, size))
        return self.taken(self.rows(batch))

    @torch.no_grad()
    def replay_padding(self, size: int) -> None:
        """Run one graph without any live row: it writes the output buffer, and reserved slots alone."""
        self._run(size, self.dummy_batch(size))

    def taken(self, rows: int) -> Tensor:
        """A copy of the last replay's first rows: the next replay, of whatever size, writes over the buffer."""
        assert self.output is not None  # noqa: S101 - a runner captures in its constructor
        return self.output[:rows].clone()

    def _run(self, size: int, batch: ForwardBatch) -> None:
        backend = self.runner.attn_backend
        if self.breaks:
            backend.init_forward_metadata(batch)
        else:
            backend.prepare_replay(batch)
        self.captured[size].graph.replay()

    @staticmethod
    def rows(batch: ForwardBatch) -> int:
        """What sizes count: tokens, which for decode are requests."""
        return batch.num_tokens
