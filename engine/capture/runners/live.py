"""Live batches for verification: requests with context behind them, in slots scattered over the pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.pools import ReqToTokenPool
from engine.capture.runners.model_runner import ModelRunner
from engine.capture.runners.requests import Part, chunked, composed


@dataclass(frozen=True, slots=True)
class Passes:
    """One comparison: what runs eagerly, and what is replayed instead; both leave the same state, and the rows of their
    outputs, one pass after the other, are the same."""

    eager: tuple[ForwardBatch, ...]
    replayed: tuple[ForwardBatch, ...]


class LiveBatches:
    """Makes batches from a seed. Making one also fills the pools with what earlier tenants could have left there:
    the context of the batch's own requests, and everybody else's state."""

    def __init__(self, runner: ModelRunner, seed: int) -> None:
        self._runner = runner
        self._generator = torch.Generator().manual_seed(seed)
        self._noise = torch.Generator(device=runner.device).manual_seed(seed)

    def extend(self, lengths: Sequence[int], prefixes: Sequence[int]) -> Passes:
        """A prefill of ``lengths`` new tokens for each request, ``prefixes`` tokens being cached already."""
        whole = composed(self._requests, "extend", self._parts(lengths, prefixes))
        return Passes((whole,), (whole,))

    def extend_in_chunks(self, length: int, prefix: int, chunk: int) -> Passes:
        """One long prompt: eagerly at once, replayed in chunks of ``chunk`` tokens."""
        parts = self._parts([length], [prefix])
        chunks = tuple(composed(self._requests, "extend", part) for part in chunked(parts, chunk))
        return Passes((composed(self._requests, "extend", parts),), chunks)

    def decode(self, contexts: Sequence[int], steps: int = 1) -> Passes:
        """``steps`` new tokens for each request, one a pass, after ``contexts`` tokens."""
        parts = self._parts([steps] * len(contexts), contexts)
        passes = tuple(
            composed(
                self._requests,
                "decode",
                [Part(part.row, part.prefix + step, part.tokens[step : step + 1]) for part in parts],
            )
            for step in range(steps)
        )
        return Passes(passes, passes)

    @property
    def _requests(self) -> ReqToTokenPool:
        return self._runner.pools.requests

    def _parts(self, lengths: Sequence[int], prefixes: Sequence[int]) -> list[Part]:
        self._runner.pools.scramble(self._noise)
        rows = self._scattered(self._requests.max_requests)[: len(lengths)]
        self._assign(rows)
        return [
            Part(row, prefix, self._tokens(length))
            for row, prefix, length in zip(rows.tolist(), prefixes, lengths, strict=True)
        ]

    def _assign(self, rows: Tensor) -> None:
        """Give each request state slots and key-value pages, none of them shared, none reserved."""
        pools, requests = self._runner.pools, self._requests
        requests.table.zero_()
        requests.state_index.zero_()
        requests.track_index.zero_()
        device, size = requests.table.device, requests.page_size
        pages = self._scattered(pools.kv.slots // size)[: len(rows) * requests.pages_a_request]
        slots = (pages[:, None] * size + torch.arange(size)).view(len(rows), requests.max_context)
        requests.table[rows] = slots.to(device)
        states = self._scattered(pools.states.slots).to(device)
        requests.state_index[rows] = states[: len(rows)]
        requests.track_index[rows] = states[len(rows) : 2 * len(rows)]

    def _scattered(self, count: int) -> Tensor:
        """1 to ``count`` in random order: the first slot or page of a pool is reserved."""
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
