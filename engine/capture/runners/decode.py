"""Decode graphs: one new token a request, one graph a number of requests."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.recorders.base import Recorder
from engine.capture.runners.base import CudaGraphRunner, Emit
from engine.capture.runners.inputs import StaticInputs
from engine.capture.runners.model_runner import ModelRunner


class DecodeCudaGraphRunner(CudaGraphRunner):
    """Sizes are requests. Allocates the attention backend's tables, then captures the whole forward pass.

    Under decode-owned allocation this is the only caller of ``init_cuda_graph_state`` (SGLang 0.5.23,
    model_executor/runner/decode_cuda_graph_runner.py, ``__init__``).
    """

    phase = "decode"

    def __init__(
        self, runner: ModelRunner, *, backend: str, sizes: Sequence[int], recorder: Recorder, emit: Emit
    ) -> None:
        super().__init__(runner, backend=backend, sizes=sizes, recorder=recorder, emit=emit)
        emit("decode.runner.begin")
        most = self.sizes[-1]
        runner.attn_backend.init_cuda_graph_state(most, most, "decode")
        emit("decode.graph_state.allocated", max_bs=most)
        self.inputs = StaticInputs("decode", tokens=most, requests=most, device=runner.device)
        self.capture()
        emit("decode.runner.constructed")

    def can_run_graph(self, batch: ForwardBatch) -> bool:
        return batch.mode == "decode" and self.padded_size(batch.batch_size) is not None

    def dummy_batch(self, size: int) -> ForwardBatch:
        self.inputs.clear(tokens=0, requests=0)
        return self.inputs.batch(tokens=size, requests=size, max_len=1, num_padding=size)

    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        live = batch.batch_size
        self.inputs.clear(tokens=live, requests=live)
        self.inputs.load_tokens(batch)
        self.inputs.load_requests(batch)
        return self.inputs.batch(tokens=size, requests=size, max_len=1, num_padding=size - live)

    def forward(self, batch: ForwardBatch) -> Tensor:
        out: Tensor = self.runner.model(batch.input_ids, batch.positions, self.runner.attn_backend)
        return out
