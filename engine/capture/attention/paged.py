"""What a full-attention layer sees of its pool: write this pass's tokens, read every token's context, mask."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch

MASKED = -1e30


class PagedAccess:
    """Key-value access for the ``T`` token rows of one pass.

    Every tensor that is read here belongs to the batch or to a pool; all shapes follow from ``T``, ``R`` and the
    pool's context length, so that the operators can be captured.
    """

    def __init__(self, batch: ForwardBatch, tables: Tensor, cache: Mapping[str, Tensor]) -> None:
        self.positions = batch.positions
        self._cache = cache
        self._out_cache_loc = batch.out_cache_loc
        rows = torch.arange(batch.num_tokens, device=batch.input_ids.device)
        request = torch.bucketize(rows, batch.query_start_loc[1:], right=True)
        self._live = request < batch.batch_size
        request = request.clamp(max=batch.batch_size - 1)
        self._slots = tables[batch.req_pool_indices[request]]
        self._context = torch.arange(tables.shape[1], device=rows.device)

    def write(self, name: str, rows: Tensor) -> None:
        """Store this pass's ``[T, ...]`` rows at their slots; padding goes to reserved slot 0."""
        slots = torch.where(self._live, self._out_cache_loc, 0)
        self._cache[name].index_copy_(0, slots, rows.to(self._cache[name].dtype))

    def read(self, name: str) -> Tensor:
        """``[T, context, ...]``: for each token its whole request."""
        return self._cache[name][self._slots]

    def attend(self, scores: Tensor, *, window: int | None = None, chunk: int | None = None) -> Tensor:
        """Softmax over the context of ``scores`` ``[T, heads, context]``, causal; zero for padding rows.

        ``window``: only the last ``window`` tokens, this one included. ``chunk``: only the token's own chunk.
        """
        here = self.positions[:, None]
        mask = self._context <= here
        if window is not None:
            mask = mask & (self._context > here - window)
        if chunk is not None:
            mask = mask & (self._context // chunk == here // chunk)
        scores = torch.where(mask[:, None, :], scores.float(), MASKED)
        return torch.softmax(scores, dim=-1) * self._live[:, None, None]
