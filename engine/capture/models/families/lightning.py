"""Lightning attention (Qin et al. 2024; MiniMax-01): linear attention with one fixed decay a head, no convolution.

Parameters carry the names and layouts of transformers' MiniMaxLightningAttention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.norm import RMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class LightningAttention(RecurrentMixer):
    """The decay of head ``h`` of ``H`` is ``exp(-2 ** (-8 (h + 1) / H))``, weaker in later layers."""

    label = "lightning attention"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim = shape.linear_key_heads, shape.linear_key_dim
        width = self.num_heads * self.head_dim
        self.qkv_proj = nn.Linear(shape.hidden_size, 3 * width, bias=False)
        self.output_gate = nn.Linear(shape.hidden_size, width, bias=False)
        self.norm = RMSNorm(width)
        self.out_proj = nn.Linear(width, shape.hidden_size, bias=False)
        depth = 1 - layer / (len(shape.layer_kinds) - 1 + 1e-5) + 1e-5
        self.register_buffer("slope_rate", (slopes(self.num_heads) * depth)[:, None, None])

    def state_shapes(self, dtype: torch.dtype) -> Shapes:  # noqa: ARG002 - the contract of a mixer
        return {"recurrent": ((self.num_heads, self.head_dim, self.head_dim), torch.float32)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        qkv = heads(functional.silu(self.qkv_proj(hidden)), self.num_heads)
        return *qkv.chunk(3, dim=-1), self.output_gate(hidden)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        return lightning_scan(access, self.get_buffer("slope_rate").flatten(), inputs)

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.out_proj(inputs[3].sigmoid() * self.norm(mixed.flatten(1)))
        return out


def slopes(count: int) -> Tensor:
    """ALiBi's slopes (Press et al. 2021), ``2 ** (-8 (h + 1) / count)`` for ``count`` heads.

    Where ``count`` is no power of two, those of the next smaller one and then every other one of the next larger.
    """
    whole = 2 ** int(math.log2(count))
    first = 2.0 ** (-8 / whole * torch.arange(1, whole + 1))
    between = 2.0 ** (-8 / (2 * whole) * torch.arange(1, 2 * whole + 1, 2))
    return torch.cat([first, between[: count - whole]])


def lightning_scan(access: RaggedAccess, slope: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """The recurrence over queries, keys and values ``[T, heads, dim]``: the state decays by ``exp(-slope)`` a token."""
    query, key, value = (access.dense(part).float() for part in inputs[:3])
    decay = torch.exp(-slope.float())[:, None, None]

    def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        state = state * decay + k[..., None] * v[..., None, :]
        return state, torch.einsum("rhkv,rhk->rhv", state, q)

    return access.flat(access.scan("recurrent", step, query, key, value).to(inputs[0].dtype))


@family("lightning")
def _lightning(shape: ModelShape, layer: int) -> LightningAttention:
    return LightningAttention(shape, layer)
