"""What a recurrent layer sees of its pool: the batch as dense rows, and each request's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import Tracking


@dataclass(slots=True, kw_only=True)
class LinearMetadata:
    """What the kernels of a recurrent layer read.

    ``state_indices`` is ``PAD_SLOT_ID`` for rows without a live request; ``has_initial`` says which requests go on from
    their stored state (all others start from zero, whatever the slot's last tenant left).
    """

    query_start_loc: Tensor
    state_indices: Tensor
    has_initial: Tensor
    num_tokens: int
    max_len: int
    tracking: Tracking | None = None


class RaggedAccess:
    """State access, and the batch's ``T`` token rows as ``[R, L, ...]`` with ``L = max_len``.

    All shapes follow from ``T``, ``R`` and ``L``, so that the operators can be captured. Where boundaries are tracked,
    every state that is moved on is also kept as it was at its request's boundary.
    """

    def __init__(self, metadata: LinearMetadata, states: Mapping[str, Tensor]) -> None:
        self._states = states
        self._num_tokens = metadata.num_tokens
        start = metadata.query_start_loc[:-1].long()
        self.lengths = metadata.query_start_loc[1:].long() - start
        steps = torch.arange(metadata.max_len, device=start.device)
        self.mask = steps < self.lengths[:, None]
        # Rows that are no token of the request read row 0 and are written to a row that is dropped.
        self._rows = torch.where(self.mask, start[:, None] + steps, 0)
        self._targets = torch.where(self.mask, start[:, None] + steps, metadata.num_tokens)
        self._has_initial = metadata.has_initial
        self._slots = metadata.state_indices.long().clamp(min=0)
        tracking = metadata.tracking
        self._ends = None if tracking is None else torch.where(tracking.mask, tracking.ends.long(), 0)
        # A request that reaches no boundary keeps nothing: reserved slot 0.
        self._kept = None if tracking is None else torch.where(tracking.mask, tracking.indices, 0)

    def dense(self, rows: Tensor) -> Tensor:
        """``[T, ...]`` to ``[R, L, ...]``."""
        return rows[self._rows]

    def flat(self, dense: Tensor) -> Tensor:
        """``[R, L, ...]`` to ``[T, ...]``; rows of no request are zero."""
        rest = dense.shape[2:]
        out = dense.new_zeros((self._num_tokens + 1, *rest))
        out.index_copy_(0, self._targets.reshape(-1), dense.reshape(-1, *rest))
        return out[: self._num_tokens]

    def load(self, name: str) -> Tensor:
        """The state each request starts from, ``[R, ...]``."""
        state = self._states[name][self._slots]
        return torch.where(_column(self._has_initial, state), state, torch.zeros_like(state))

    def store(self, name: str, state: Tensor, at_boundary: Tensor | None = None) -> None:
        """Write each request's state back, and where boundaries are tracked the state as it was ``at_boundary``;
        padding writes reserved slot 0."""
        pool = self._states[name]
        pool.index_copy_(0, self._slots, state.to(pool.dtype))
        if self._kept is not None and at_boundary is not None:
            pool.index_copy_(0, self._kept, at_boundary.to(pool.dtype))

    def window(self, name: str, dense: Tensor, width: int) -> Tensor:
        """``[R, width + L, C]``: the ``width`` stored tokens before these ``[R, L, C]``, then these; the stored are
        moved on."""
        window = torch.cat([self.load(name).to(dense.dtype), dense], dim=1)
        kept = None if self._ends is None else _last(window, self._ends, width)
        self.store(name, _last(window, self.lengths, width), kept)
        return window

    def convolve(self, name: str, dense: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Causal depthwise convolution of ``[R, L, C]`` with ``weight`` ``[C, taps]``, or one for each token
        ``[R, L, C, taps]``, carrying on from the stored window of ``taps - 1`` tokens, which is moved on."""
        taps = weight.shape[-1]
        length = dense.shape[1]
        window = self.window(name, dense, taps - 1)
        out = sum((window[:, k : k + length] * weight[..., k] for k in range(taps)), start=torch.zeros_like(dense))
        return out if bias is None else out + bias

    def scan(self, name: str, step: Callable[..., tuple[Tensor, Tensor]], *inputs: Tensor) -> Tensor:
        """Run ``step(state, *inputs of one token) -> (state, output)`` over the ``L`` tokens of every request.

        ``inputs`` are ``[R, L, ...]``; the output is ``[R, L, ...]``. Rows past a request's length leave its state.
        """
        state = self.load(name)
        kept = None if self._ends is None else state
        outputs = []
        for t in range(self.mask.shape[1]):
            moved, output = step(state, *(value[:, t] for value in inputs))
            state = torch.where(_column(self.mask[:, t], state), moved, state)
            if self._ends is not None and kept is not None:
                kept = torch.where(_column(self._ends > t, state), state, kept)
            outputs.append(output)
        self.store(name, state, kept)
        return torch.stack(outputs, dim=1)


def _column(mask: Tensor, state: Tensor) -> Tensor:
    """A value for each request, to broadcast over its state."""
    return mask.view(-1, *[1] * (state.dim() - 1))


def _last(window: Tensor, ends: Tensor, width: int) -> Tensor:
    """Of ``[R, width + L, C]``, whose first ``width`` rows are older: the ``width`` rows before each request's end."""
    rows = ends[:, None] + torch.arange(width, device=window.device)
    return torch.gather(window, 1, rows[..., None].expand(-1, -1, window.shape[-1]))
