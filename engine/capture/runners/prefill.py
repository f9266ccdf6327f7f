"""Prefill graphs: many new tokens of a few requests, one graph a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.recorders.base import Recorder
from engine.capture.runners.base import CudaGraphRunner, Emit
from engine.capture.runners.inputs import StaticInputs
from engine.capture.runners.model_runner import ModelRunner


class PrefillCudaGraphRunner(CudaGraphRunner):
    """Sizes are tokens. A full graph has ``max_requests`` request rows, those without a request of length zero.

    Captures the layers without the head (SGLang 0.5.23, model_executor/runner/prefill_cuda_graph_runner.py). A full
    graph asks the attention backend for its static tables before anybody allocated them, unless ``allocation`` is
    per-phase; a breakable one runs the backend eagerly and needs none. A prompt longer than the largest graph, or than
    a chunk, runs as several replays (:func:`engine.capture.runners.requests.chunked`).
    """

    phase = "prefill"

    def __init__(
        self,
        runner: ModelRunner,
        *,
        backend: str,
        sizes: Sequence[int],
        max_requests: int,
        recorder: Recorder,
        emit: Emit,
    ) -> None:
        super().__init__(runner, backend=backend, sizes=sizes, recorder=recorder, emit=emit)
        emit("prefill.runner.begin")
        self.max_requests = max_requests
        most = self.sizes[-1]
        if runner.allocation == "per-phase" and not self.breaks:
            runner.attn_backend.init_cuda_graph_state(max_requests, max(most, max_requests), "extend")
            emit("prefill.graph_state.allocated", max_bs=max_requests)
        self.inputs = StaticInputs("extend", tokens=most, requests=max_requests, device=runner.device)
        self.capture()
        emit("prefill.runner.constructed")

    def can_run_graph(self, batch: ForwardBatch) -> bool:
        fits = self.breaks or batch.batch_size <= self.max_requests
        return batch.mode == "extend" and fits and self.padded_size(batch.num_tokens) is not None

    def dummy_batch(self, size: int) -> ForwardBatch:
        self.inputs.clear(tokens=0, requests=0)
        return self._rows(size, num_padding=self.max_requests)

    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        requests = 0 if self.breaks else batch.batch_size
        self.inputs.clear(tokens=batch.num_tokens, requests=requests)
        self.inputs.load_tokens(batch)
        if self.breaks:
            # The segments read token rows only; the eager steps between them see the live requests as they are.
            rows = self._rows(size, num_padding=0)
            return replace(batch, input_ids=rows.input_ids, positions=rows.positions, out_cache_loc=rows.out_cache_loc)
        self.inputs.load_requests(batch)
        return self._rows(size, num_padding=self.max_requests - requests)

    def forward(self, batch: ForwardBatch) -> Tensor:
        return self.runner.model.body(batch.input_ids, batch.positions, self.runner.attn_backend)

    def _rows(self, size: int, *, num_padding: int) -> ForwardBatch:
        return self.inputs.batch(tokens=size, requests=self.max_requests, max_len=size, num_padding=num_padding)
