"""The static inputs of a phase's graphs: a graph of a size reads the first rows of each."""

from __future__ import annotations

import torch

from engine.capture.attention.batch import ForwardBatch, ForwardMode, Tracking


class StaticInputs:
    """Allocated once, for the largest graph. Captured graphs hold these addresses: everything is written in place.

    Rows without a live token or request are padding: they write reserved slot 0, and have no token of their own.
    """

    def __init__(self, mode: ForwardMode, *, tokens: int, requests: int, device: torch.device) -> None:
        self._mode: ForwardMode = mode
        self.input_ids = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.positions = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.out_cache_loc = torch.zeros(tokens, dtype=torch.int64, device=device)
        self.req_pool_indices = torch.zeros(requests, dtype=torch.int64, device=device)
        self.prefix_lens = torch.zeros(requests, dtype=torch.int64, device=device)
        self.query_start_loc = torch.zeros(requests + 1, dtype=torch.int64, device=device)
        self.track_mask = torch.zeros(requests, dtype=torch.bool, device=device)
        self.track_ends = torch.zeros(requests, dtype=torch.int64, device=device)
        self.track_indices = torch.zeros(requests, dtype=torch.int64, device=device)

    def clear(self, *, tokens: int, requests: int) -> None:
        """Make everything beyond ``tokens`` token rows and ``requests`` request rows padding."""
        for tensor in (self.input_ids, self.positions, self.out_cache_loc):
            tensor[tokens:].zero_()
        for tensor in (self.req_pool_indices, self.prefix_lens, self.track_mask, self.track_ends, self.track_indices):
            tensor[requests:].zero_()
        self.query_start_loc[requests:].fill_(tokens)

    def load_tokens(self, batch: ForwardBatch) -> None:
        """Write a live batch's token rows."""
        for name in ("input_ids", "positions", "out_cache_loc"):
            getattr(self, name)[: batch.num_tokens].copy_(getattr(batch, name))

    def load_requests(self, batch: ForwardBatch) -> None:
        """Write a live batch's request rows."""
        live = batch.batch_size
        self.req_pool_indices[:live].copy_(batch.req_pool_indices)
        self.prefix_lens[:live].copy_(batch.prefix_lens)
        self.query_start_loc[: live + 1].copy_(batch.query_start_loc)
        self.track_mask[:live].zero_()
        if batch.tracking is not None:
            self.track_mask[:live].copy_(batch.tracking.mask)
            self.track_ends[:live].copy_(batch.tracking.ends)
            self.track_indices[:live].copy_(batch.tracking.indices)

    def batch(self, *, tokens: int, requests: int, max_len: int, num_padding: int) -> ForwardBatch:
        """The first rows as a batch of ``tokens`` and ``requests`` rows, ``num_padding`` of the latter padding."""
        return ForwardBatch(
            mode=self._mode,
            input_ids=self.input_ids[:tokens],
            positions=self.positions[:tokens],
            out_cache_loc=self.out_cache_loc[:tokens],
            req_pool_indices=self.req_pool_indices[:requests],
            prefix_lens=self.prefix_lens[:requests],
            query_start_loc=self.query_start_loc[: requests + 1],
            max_len=max_len,
            num_padding=num_padding,
            tracking=Tracking(
                mask=self.track_mask[:requests], ends=self.track_ends[:requests], indices=self.track_indices[:requests]
            ),
        )
