"""From requests to a forward pass: the part of a scheduler that captures need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch, ForwardMode, Tracking
from engine.capture.attention.pools import ReqToTokenPool

TRACK_INTERVAL = 4
"""Tokens between the boundaries at which recurrent state is kept. The engine's default is 256
(``--mamba-track-interval``); contexts are scaled down here, and boundaries with them."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one request brings to a pass: the new ``tokens`` (possibly none), after ``prefix`` tokens that are cached.

    ``row`` is its row in the request-to-token pool.
    """

    row: int
    prefix: int
    tokens: Tensor


def composed(requests: ReqToTokenPool, mode: ForwardMode, parts: Sequence[Part]) -> ForwardBatch:
    """One pass over ``parts``, in their order, on the pool's device."""
    device = requests.table.device
    rows = torch.tensor([part.row for part in parts])
    lengths = torch.tensor([len(part.tokens) for part in parts])
    prefixes = torch.tensor([part.prefix for part in parts])
    positions = torch.cat([torch.arange(part.prefix, part.prefix + len(part.tokens)) for part in parts])
    boundaries = (prefixes + lengths) // TRACK_INTERVAL * TRACK_INTERVAL
    reached = boundaries > prefixes
    return ForwardBatch(
        mode=mode,
        input_ids=torch.cat([part.tokens for part in parts]).to(device),
        positions=positions.to(device),
        out_cache_loc=requests.table.cpu()[rows.repeat_interleave(lengths), positions].to(device),
        req_pool_indices=rows.to(device),
        prefix_lens=prefixes.to(device),
        query_start_loc=torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(device),
        max_len=max(1, int(lengths.max())),
        tracking=Tracking(
            mask=reached.to(device),
            ends=torch.where(reached, boundaries - prefixes, 0).to(device),
            indices=requests.track_index[rows.to(device)],
        ),
    )


def chunked(parts: Sequence[Part], chunk: int) -> list[list[Part]]:
    """The same requests over several passes of at most ``chunk`` new tokens each: chunked prefill.

    A request that a chunk cuts goes on in the next, with what it has so far as its prefix.

    >>> long = Part(1, 0, torch.arange(5))
    >>> [[(part.prefix, len(part.tokens)) for part in one] for one in chunked([long, Part(2, 3, torch.arange(2))], 3)]
    [[(0, 3)], [(3, 2), (3, 1)], [(4, 1)]]
    """
    passes: list[list[Part]] = [[]]
    room = chunk
    for part in parts:
        done = 0
        while done < len(part.tokens):
            if room == 0:
                passes.append([])
                room = chunk
            taken = part.tokens[done : done + room]
            passes[-1].append(Part(part.row, part.prefix + done, taken))
            done += len(taken)
            room -= len(taken)
    return passes
