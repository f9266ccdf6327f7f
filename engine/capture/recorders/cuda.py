"""CUDA graphs on a GPU, all in one memory pool, largest first by the runners' order."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from engine.capture.recorders.base import CaptureRefused, Recorder, Run, cutting
from engine.capture.report import Claim


class CudaGraphs:
    """One forward pass: one CUDA graph, or several with eager steps between them."""

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
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def record(self, run: Run, *, breaks: bool) -> CudaGraphs:
        graphs = CudaGraphs()
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved(self.device)
        with torch.cuda.stream(self._stream):
            segment = self._begin(graphs)

            def cut(eager: Run) -> Tensor:
                nonlocal segment
                segment.capture_end()
                result = eager().clone()
                graphs.steps.append(lambda: result.copy_(eager()))
                segment = self._begin(graphs)
                return result

            try:
                if breaks:
                    with cutting(cut):
                        graphs.result = run()
                else:
                    graphs.result = run()
            except BaseException:
                _abandon(segment)
                raise
            segment.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        torch.cuda.synchronize(self.device)
        graphs.bytes = max(0, torch.cuda.memory_reserved(self.device) - before)
        return graphs

    def _begin(self, graphs: CudaGraphs) -> torch.cuda.CUDAGraph:
        segment = torch.cuda.CUDAGraph()
        segment.capture_begin(pool=self._pool)
        graphs.steps.append(segment.replay)
        graphs.segments += 1
        return segment


def _abandon(segment: torch.cuda.CUDAGraph) -> None:
    """Leave the stream's capture mode; the failure that ended the capture is the one to report."""
    try:
        segment.capture_end()
    except RuntimeError:
        return
