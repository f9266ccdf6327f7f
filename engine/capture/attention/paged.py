"""What a full-attention layer sees of its pool: write this pass's tokens, read every token's context, mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch

MASKED = -1e30


@dataclass(slots=True, kw_only=True)
class PagedMetadata:
    """What the kernels of a full-attention layer read.

    ``page_table``: ``[R, pages a request]``, each page of ``page_size`` tokens; the batch's own per-token tensors say
    where each token stands and where it is written.
    """

    batch: ForwardBatch
    page_table: Tensor
    page_size: int


class PagedAccess:
    """Key-value access for the ``T`` token rows of one pass.

    Every tensor that is read here belongs to the metadata or to a pool; all shapes follow from ``T``, ``R`` and the
    page table's width, so that the operators can be captured.
    """

    def __init__(self, metadata: PagedMetadata, cache: Mapping[str, Tensor]) -> None:
        batch = metadata.batch
        self.positions = batch.positions
        self._cache = cache
        self._out_cache_loc = batch.out_cache_loc
        rows = torch.arange(batch.num_tokens, device=batch.input_ids.device)
        request = torch.bucketize(rows, batch.query_start_loc[1:], right=True)
        self._live = request < batch.batch_size
        pages = metadata.page_table.long()[request.clamp(max=batch.batch_size - 1)]
        inside = torch.arange(metadata.page_size, device=rows.device)
        self._slots = (pages[:, :, None] * metadata.page_size + inside).flatten(1)
        self._context = torch.arange(self._slots.shape[1], device=rows.device)

    def write(self, name: str, rows: Tensor) -> None:
        """Store this pass's ``[T, ...]`` rows at their slots; padding goes to reserved slot 0."""
        slots = torch.where(self._live, self._out_cache_loc, 0)
        self._cache[name].index_copy_(0, slots, rows.to(self._cache[name].dtype))

    def read(self, name: str) -> Tensor:
        """``[T, context, ...]``: for each token its whole request."""
        return self._cache[name][self._slots]

    def distances(self) -> Tensor:
        """``[T, context]``: how many tokens each of its request's is before this one; negative after it."""
        return self.positions[:, None] - self._context

    def attend(
        self, scores: Tensor, *, window: int | None = None, chunk: int | None = None, sinks: Tensor | None = None
    ) -> Tensor:
        """Softmax over the context of ``scores`` ``[T, heads, context]``, causal; zero for padding rows.

        ``window``: only the last ``window`` tokens, this one included. ``chunk``: only the token's own chunk.
        ``sinks``: a score for each head that takes its share of the softmax and gives nothing.
        """
        here = self.positions[:, None]
        mask = self._context <= here
        if window is not None:
            mask = mask & (self._context > here - window)
        if chunk is not None:
            mask = mask & (self._context // chunk == here // chunk)
        scores = torch.where(mask[:, None, :], scores.float(), MASKED)
        if sinks is not None:
            scores = torch.cat([scores, sinks.float()[None, :, None].expand(len(scores), -1, 1)], dim=-1)
        return torch.softmax(scores, dim=-1)[..., : len(self._context)] * self._live[:, None, None]
