"""Prefill graphs: many new tokens of a few requests, one graph a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.recorders.base import Recorder
from engine.capture.runners.base import CudaGraphRunner, Emit
from engine.capture.runners.model_runner import ModelRunner


class PrefillCudaGraphRunner(CudaGraphRunner):
    """Sizes are tokens. A full graph has ``max_requests`` request rows, those without a request of length zero.

    Captures the layers without the head (SGLang 0.5.23, model_executor/runner/prefill_cuda_graph_runner.py). A full
    graph asks the attention backend for its static tables before anybody allocated them, unless ``allocation`` is
    per-phase; a breakable one runs the backend eagerly and needs none.
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
        self.buffers = PrefillBuffers(most, max_requests, runner.device)
        self.capture()
        emit("prefill.runner.constructed")

    def can_run_graph(self, batch: ForwardBatch) -> bool:
        fits = self.breaks or batch.batch_size <= self.max_requests
        return batch.mode == "extend" and fits and self.padded_size(batch.num_tokens) is not None

    def dummy_batch(self, size: int) -> ForwardBatch:
        self.buffers.clear(size, live_tokens=0, live_requests=0)
        return self.buffers.batch(size, num_padding=self.max_requests)

    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        tokens, requests = batch.num_tokens, batch.batch_size
        static = self.buffers
        static.clear(size, live_tokens=tokens, live_requests=0 if self.breaks else requests)
        for name in ("input_ids", "positions", "out_cache_loc"):
            getattr(static, name)[:tokens].copy_(getattr(batch, name))
        if self.breaks:
            # The segments read token rows only; the eager steps between them see the live requests as they are.
            rows = static.batch(size, num_padding=0)
            return replace(batch, input_ids=rows.input_ids, positions=rows.positions, out_cache_loc=rows.out_cache_loc)
        static.req_pool_indices[:requests].copy_(batch.req_pool_indices)
        static.prefix_lens[:requests].copy_(batch.prefix_lens)
        static.query_start_loc[: requests + 1].copy_(batch.query_start_loc)
        return static.batch(size, num_padding=self.max_requests - requests)

    def forward(self, batch: ForwardBatch) -> Tensor:
        return self.runner.model.body(batch.input_ids, batch.positions, self.runner.attn_backend)


class PrefillBuffers:
    """The static inputs of every prefill graph: a graph of ``size`` reads the first ``size`` token rows."""

    def __init__(self, tokens: int, requests: int, device: torch.device) -> None:
        self.input_ids = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.positions = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.out_cache_loc = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.req_pool_indices = torch.zeros(requests, dtype=torch.int64, device=device)
        self.prefix_lens = torch.zeros(requests, dtype=torch.int64, device=device)
        self.query_start_loc = torch.zeros(requests + 1, dtype=torch.int64, device=device)

    def clear(self, size: int, *, live_tokens: int, live_requests: int) -> None:
        """Padding tokens write reserved slot 0; padding requests start at the end of the live tokens, with none."""
        for tensor in (self.input_ids, self.positions, self.out_cache_loc):
            tensor[live_tokens:size].zero_()
        self.req_pool_indices[live_requests:].zero_()
        self.prefix_lens[live_requests:].zero_()
        self.query_start_loc[live_requests:].fill_(live_tokens)

    def batch(self, size: int, *, num_padding: int) -> ForwardBatch:
        return ForwardBatch(
            mode="extend",
            input_ids=self.input_ids[:size],
            positions=self.positions[:size],
            out_cache_loc=self.out_cache_loc[:size],
            req_pool_indices=self.req_pool_indices,
            prefix_lens=self.prefix_lens,
            query_start_loc=self.query_start_loc,
            max_len=size,
            num_padding=num_padding,
        )
