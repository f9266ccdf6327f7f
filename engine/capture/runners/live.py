"""Live batches for verification: requests with context behind them, in slots scattered over the pools."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.runners.model_runner import ModelRunner


class LiveBatches:
    """Makes batches from a seed. Making one also fills the pools with what earlier tenants could have left there:
    the context of the batch's own requests, and everybody else's state."""

    def __init__(self, runner: ModelRunner, seed: int) -> None:
        self._runner = runner
        self._generator = torch.Generator().manual_seed(seed)
        self._noise = torch.Generator(device=runner.device).manual_seed(seed)

    def extend(self, lengths: Sequence[int], prefixes: Sequence[int]) -> ForwardBatch:
        """A prefill of ``lengths`` new tokens for each request, ``prefixes`` tokens being cached already."""
        return self._batch("extend", lengths, prefixes)

    def decode(self, contexts: Sequence[int]) -> ForwardBatch:
        """One new token for each request, after ``contexts`` tokens."""
        return self._batch("decode", [1] * len(contexts), contexts)

    def _batch(self, mode: ForwardMode, lengths: Sequence[int], prefixes: Sequence[int]) -> ForwardBatch:
        runner, requests = self._runner, self._runner.pools.requests
        runner.pools.scramble(self._noise)
        rows = self._scattered(requests.max_requests)[: len(lengths)]
        self._assign(rows)
        positions = torch.cat([torch.arange(p, p + n) for n, p in zip(lengths, prefixes, strict=True)])
        owners = rows.repeat_interleave(torch.tensor(lengths))
        starts = torch.tensor([0, *lengths]).cumsum(0)
        device = runner.device
        return ForwardBatch(
            mode=mode,
            input_ids=self._tokens(len(positions)).to(device),
            positions=positions.to(device),
            out_cache_loc=requests.table.cpu()[owners, positions].to(device),
            req_pool_indices=rows.to(device),
            prefix_lens=torch.tensor(prefixes).to(device),
            query_start_loc=starts.to(device),
            max_len=max(lengths),
        )

    def _assign(self, rows: Tensor) -> None:
        """Give each request a state slot and key-value slots, none of them shared, none reserved."""
        pools = self._runner.pools
        requests = pools.requests
        requests.table.zero_()
        requests.state_index.zero_()
        slots = self._scattered(pools.kv.slots)[: len(rows) * requests.max_context]
        requests.table[rows] = slots.view(len(rows), requests.max_context).to(requests.table.device)
        requests.state_index[rows] = self._scattered(pools.states.slots)[: len(rows)].to(requests.table.device)

    def _scattered(self, count: int) -> Tensor:
        """1 to ``count`` in random order: row 0 of a pool is reserved."""
        return torch.randperm(count, generator=self._generator) + 1

    def _tokens(self, count: int) -> Tensor:
        return torch.randint(0, self._runner.shape.vocab_size, (count,), generator=self._generator)

    def split(self, total: int, parts: int) -> list[int]:
        """``total`` tokens over ``parts`` requests, at least one each, in random shares."""
        if parts <= 1:
            return [total]
        cuts = (torch.randperm(total - 1, generator=self._generator)[: parts - 1] + 1).sort().values.tolist()
        return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]

    def number(self, low: int, high: int) -> int:
        """A random number from ``low`` to ``high``, both included."""
        return int(torch.randint(low, high + 1, (1,), generator=self._generator))
