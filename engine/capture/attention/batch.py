"""One forward pass's inputs, as the runners hand them to the attention backends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

ForwardMode = Literal["extend", "decode"]
"""``extend`` is prefill (several new tokens a request, with or without a cached prefix), ``decode`` one token each."""

PAD_SLOT_ID = -1
"""The state index of a row without a live request, as in the engine's backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """Which requests' recurrent state is kept at a boundary, so that a prefix cache can go on from there.

    Per request row: ``mask`` (bool) whether this pass reaches a boundary, ``ends`` how many of the pass's new tokens
    lie before it, ``indices`` the state slot that gets the copy. After the engine's mamba_track_mask,
    mamba_track_seqlens and mamba_track_indices (SGLang 0.5.23, model_executor/forward_batch_info.py).
    """

    mask: Tensor
    ends: Tensor
    indices: Tensor


@dataclass(slots=True, kw_only=True)
class ForwardBatch:
    """``T`` token rows of ``R`` request rows.

    Tokens of one request are adjacent; request ``r`` owns rows ``query_start_loc[r]`` to ``query_start_loc[r + 1]``.
    ``positions`` and ``out_cache_loc`` (the key-value slot each token writes) are per token; ``req_pool_indices`` (the
    row of the request-to-token pool) and ``prefix_lens`` (tokens already cached) per request. Padding comes last:
    ``num_padding`` request rows own no token and point at reserved row 0, token rows beyond the last request write
    reserved slot 0. ``max_len`` is the most new tokens that one request of this batch can have. ``tracking``: None
    where no state is kept at boundaries.
    """

    mode: ForwardMode
    input_ids: Tensor
    positions: Tensor
    out_cache_loc: Tensor
    req_pool_indices: Tensor
    prefix_lens: Tensor
    query_start_loc: Tensor
    max_len: int
    num_padding: int = 0
    tracking: Tracking | None = None

    @property
    def batch_size(self) -> int:
        """Request rows, padding included."""
        return self.req_pool_indices.shape[0]

    @property
    def num_tokens(self) -> int:
        """Token rows, padding included."""
        return self.input_ids.shape[0]
