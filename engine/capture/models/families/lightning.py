"""Lightning attention (Qin et al. 2024; MiniMax-01): linear attention with one fixed decay a head, no convolution.

Parameters carry the names and layouts of transformers' MiniMaxLightningAttention.
"""

from __future__ import annotations

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
        slope = 2.0 ** (-8 / self.num_heads * torch.arange(1, self.num_heads + 1))
        depth = 1 - layer / (len(shape.layer_kinds) - 1 + 1e-5) + 1e-5
        self.register_buffer("slope_rate", (slope * depth)[:, None, None])

    def state_shapes(self, dtype: torch.dtype) -> Shapes:  # noqa: ARG002 - the contract of a mixer
        return {"recurrent": ((self.num_heads, self.head_dim, self.head_dim), torch.float32)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        qkv = heads(functional.silu(self.qkv_proj(hidden)), self.num_heads)
        return *qkv.chunk(3, dim=-1), self.output_gate(hidden)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        query, key, value = (access.dense(part).float() for part in inputs[:3])
        decay = torch.exp(-self.get_buffer("slope_rate").float())

        def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            state = state * decay + k[..., None] * v[..., None, :]
            return state, torch.einsum("rhkv,rhk->rhv", state, q)

        return access.flat(access.scan("recurrent", step, query, key, value).to(inputs[0].dtype))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.out_proj(inputs[3].sigmoid() * self.norm(mixed.flatten(1)))
        return out


@family("lightning")
def _lightning(shape: ModelShape, layer: int) -> LightningAttention:
    return LightningAttention(shape, layer)
