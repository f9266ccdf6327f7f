"""RWKV-5 (Peng et al. 2024, "Eagle and Finch"): a matrix state a head with a decay for each channel, and token shift.

Both halves of a layer look one token back, the second one too, which takes the place of a feed-forward.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class TokenShift(nn.Module):
    """``names`` mixes of each token with the one before it, by a learned share for each channel."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        super().__init__()
        self.names = tuple(names)
        self.shares = nn.Parameter(torch.rand(len(names), width))

    def forward(self, access: RaggedAccess, name: str, rows: Tensor) -> list[Tensor]:
        """Of ``[R, L, width]``; the last token is kept under ``name``."""
        before = access.window(name, rows, 1)[:, :-1]
        return [rows + (before - rows) * share for share in self.shares]


class TimeMix(RecurrentMixer):
    """``o_i = r_i (diag(u) k_i^T v_i + S)``, ``S`` decayed by ``exp(-exp(w))`` a token; normed by head and gated."""

    label = "RWKV-5 (Eagle)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim = shape.linear_key_heads, shape.linear_key_dim
        width = self.num_heads * self.head_dim
        self.shift = TokenShift("rkvg", shape.hidden_size)
        self.parts = nn.ModuleList(nn.Linear(shape.hidden_size, width, bias=False) for _ in self.shift.names)
        self.decay = nn.Parameter(torch.randn(self.num_heads, self.head_dim))
        self.bonus = nn.Parameter(torch.randn(self.num_heads, self.head_dim))
        self.norm = nn.GroupNorm(self.num_heads, width, eps=1e-5)
        self.out = nn.Linear(width, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "shift": ((1, self.shift.shares.shape[1]), dtype),
            "recurrent": ((self.num_heads, self.head_dim, self.head_dim), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        return (hidden,)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        shifted = self.shift(access, "shift", access.dense(inputs[0]))
        rows = [part(row) for part, row in zip(self.parts, shifted, strict=True)]
        receptance, key, value = (heads(row.float(), self.num_heads) for row in rows[:3])
        decay, bonus = (-self.decay.float().exp()).exp()[..., None], self.bonus.float()[..., None]

        def step(state: Tensor, r: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            now = k[..., None] * v[..., None, :]
            return state * decay + now, torch.einsum("rhkv,rhk->rhv", state + bonus * now, r)

        out = access.scan("recurrent", step, receptance, key, value).flatten(2).to(inputs[0].dtype)
        normed = self.norm(out.flatten(0, 1)).view_as(out)
        return access.flat(normed * functional.silu(rows[3]))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        out: Tensor = self.out(mixed)
        return out


class ChannelMix(RecurrentMixer):
    """``sigmoid(W_r x) * W_v relu(W_k x)^2``, both ``x`` shifted."""

    label = "RWKV-5 (Eagle)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.shift = TokenShift("rk", shape.hidden_size)
        self.receptance = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)
        self.key = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.value = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {"channel_shift": ((1, self.shift.shares.shape[1]), dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        return (hidden,)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        receptance, key = self.shift(access, "channel_shift", access.dense(inputs[0]))
        inner = functional.relu(self.key(key)).square()
        return access.flat(self.receptance(receptance).sigmoid() * self.value(inner))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        return mixed


@family("eagle:rwkv")
def _time(shape: ModelShape, layer: int) -> TimeMix:
    return TimeMix(shape, layer)


@family("eagle:feed_forward")
def _channel(shape: ModelShape, layer: int) -> ChannelMix:
    return ChannelMix(shape, layer)
