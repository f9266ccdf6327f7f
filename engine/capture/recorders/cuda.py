"""CUDA graphs on a GPU, all in one memory pool, largest first by the runners' order.

After torch's rules for graphs (torch 2.11, notes/cuda, "CUDA Graphs"): warm-ups and captures on one side stream, so
that libraries have their workspaces before the capture; one pool for graphs that never run at the same time, each of
which reads nothing that another left there; inputs and outputs outside the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import torch
from torch import Tensor

from engine.capture.recorders.base import WARMUPS, CaptureRefused, Recorder, Run, cutting
from engine.capture.report import Claim

_FAILED: list[torch.cuda.CUDAGraph] = []
"""Graphs whose capture failed, for the life of the process: the allocator may go on asking them for their stream."""


class CudaGraphs:
    """One forward pass: one CUDA graph, or several with eager steps between them. ``bytes``: what the shared pool grew
    by when it was captured, which is little for a graph that fits into what larger ones left."""

    def __init__(self) -> None:
        self.steps: list[Callable[[], object]] = []
        self.result: Tensor | None = None
        self.bytes = 0
        self.operators: int | None = None
        self.segments = 0

    def replay(self) -> Tensor:
        if self.result is None:
            raise CaptureRefused("The graph was never captured to its end.")
        for step in self.steps:
            step()
        return self.result


class CudaGraphRecorder(Recorder):
    """Captures on a side stream into one shared pool, as the engine's full and breakable backends do."""

    name: ClassVar[str] = "cuda"
    claim: ClassVar[Claim] = "measured"

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = _side_stream(device)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def warm_up(self, run: Run) -> None:
        current = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(WARMUPS):
                run()
        current.wait_stream(self._stream)

    def record(self, run: Run, *, breaks: bool) -> CudaGraphs:
        self.synchronize()
        torch.cuda.empty_cache()
        before = self._pool_bytes()
        graphs = CudaGraphs()
        tape = _Tape(graphs, self._pool)
        with torch.cuda.stream(self._stream):
            try:
                tape.begin()
                if breaks:
                    with cutting(tape.cut):
                        graphs.result = run()
                else:
                    graphs.result = run()
                tape.end()
            except BaseException:
                self._give_up(tape)
                raise
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        self.synchronize()
        graphs.bytes = max(0, self._pool_bytes() - before)
        return graphs

    def _give_up(self, tape: _Tape) -> None:
        """Leave capture mode, and go on with another pool and stream; the failure itself is the caller's to report."""
        if tape.open is not None:
            _FAILED.append(tape.open)
            if torch.cuda.is_current_stream_capturing():
                try:
                    tape.open.capture_end()
                except RuntimeError:  # as it must, where the capture was invalidated
                    _end_allocation(self.device, self._pool)
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = _side_stream(self.device)

    def _pool_bytes(self) -> int:
        """Bytes of the device that the pool holds."""
        snapshot = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        mine = [segment for segment in snapshot if tuple(segment["segment_pool_id"]) == tuple(self._pool)]
        return sum(int(segment["total_size"]) for segment in mine)


class _Tape:
    """Captures a forward pass into one graph after another; ``open`` is the one that is being captured."""

    def __init__(self, graphs: CudaGraphs, pool: tuple[int, int]) -> None:
        self.open: torch.cuda.CUDAGraph | None = None
        self._graphs = graphs
        self._pool = pool

    def begin(self) -> None:
        self.open = torch.cuda.CUDAGraph()
        self.open.capture_begin(pool=self._pool)  # type: ignore[arg-type]  # torch's own name for such a pair is private
        self._graphs.steps.append(self.open.replay)
        self._graphs.segments += 1

    def end(self) -> None:
        if self.open is not None:
            self.open.capture_end()
            self.open = None

    def cut(self, eager: Run) -> Tensor:
        """End a graph, run ``eager`` outside of any, begin the next, which reads the result where it lies now."""
        self.end()
        result = eager().clone()
        self._graphs.steps.append(lambda: result.copy_(eager()))
        self.begin()
        return result


def _end_allocation(device: torch.device, pool: tuple[int, int]) -> None:
    """Tell the allocator that no capture uses the pool any more: torch (2.11 to 2.13) leaves that out when ending an
    invalidated capture fails, and has no public call for it."""
    end = getattr(torch._C, "_cuda_endAllocateToPool", None)
    if end is not None:
        with suppress(RuntimeError):
            end(torch.cuda.current_device() if device.index is None else device.index, pool)


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch leaves it untyped
