"""Decode graphs: one new token a request, one graph a number of requests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.recorders.base import Recorder
from engine.capture.runners.base import CudaGraphRunner, Emit
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
        self.buffers = DecodeBuffers(most, runner.device)
        self.capture()
        emit("decode.runner.constructed")

    def can_run_graph(self, batch: ForwardBatch) -> bool:
        return batch.mode == "decode" and self.padded_size(batch.batch_size) is not None

    def dummy_batch(self, size: int) -> ForwardBatch:
        self.buffers.clear(size, live=0)
        return self.buffers.batch(size, num_padding=size)

    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        live = batch.batch_size
        static = self.buffers
        static.clear(size, live=live)
        for name in ("input_ids", "positions", "out_cache_loc", "req_pool_indices", "prefix_lens"):
            getattr(static, name)[:live].copy_(getattr(batch, name))
        static.query_start_loc[: live + 1].copy_(batch.query_start_loc)
        return static.batch(size, num_padding=size - live)

    def forward(self, batch: ForwardBatch) -> Tensor:
        out: Tensor = self.runner.model(batch.input_ids, batch.positions, self.runner.attn_backend)
        return out


class DecodeBuffers:
    """The static inputs of every decode graph: a graph of ``size`` reads the first ``size`` rows."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.input_ids = torch.zeros(rows, dtype=torch.int64, device=device)
        self.positions = torch.zeros(rows, dtype=torch.int64, device=device)
        self.out_cache_loc = torch.zeros(rows, dtype=torch.int64, device=device)
        self.req_pool_indices = torch.zeros(rows, dtype=torch.int64, device=device)
        self.prefix_lens = torch.zeros(rows, dtype=torch.int64, device=device)
        self.query_start_loc = torch.zeros(rows + 1, dtype=torch.int64, device=device)

    def clear(self, size: int, *, live: int) -> None:
        """Padding rows: reserved row 0, reserved slot 0, no token of their own."""
        for tensor in (self.input_ids, self.positions, self.out_cache_loc, self.req_pool_indices, self.prefix_lens):
            tensor[live:size].zero_()
        self.query_start_loc[live : size + 1].fill_(live)

    def batch(self, size: int, *, num_padding: int) -> ForwardBatch:
        return ForwardBatch(
            mode="decode",
            input_ids=self.input_ids[:size],
            positions=self.positions[:size],
            out_cache_loc=self.out_cache_loc[:size],
            req_pool_indices=self.req_pool_indices[:size],
            prefix_lens=self.prefix_lens[:size],
            query_start_loc=self.query_start_loc[: size + 1],
            max_len=1,
            num_padding=num_padding,
        )
