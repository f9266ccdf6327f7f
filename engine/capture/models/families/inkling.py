"""Inkling's layers (Thinking Machines 2026): short convolutions on keys, values and on both blocks' outputs.

Its attention has no rotary positions but a learned bias by distance. Parameters carry the names of transformers'
InklingAttention and InklingShortConvolution, the two convolutions of keys and values being one. Below the context at
which the model starts to scale its scores by their number they are as here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.families.attention import grouped_scores, grouped_values
from engine.capture.models.mixer import Mixing, PagedMixer, RecurrentMixer, family
from engine.capture.models.norm import RMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape

RELATIVE_DIM = 8
RELATIVE_EXTENT = 16
"""The scaled model's: channels of the bias by distance, and the tokens over which it reaches."""


class ResidualConvolution(RecurrentMixer):
    """A causal depthwise convolution beside its own input; ``name`` tells its window from the layer's others."""

    label = "short convolution (Inkling)"

    def __init__(self, layer: int, width: int, taps: int, name: str) -> None:
        super().__init__(layer)
        self.name = name
        self.conv1d = nn.Conv1d(width, width, taps, groups=width, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {self.name: ((self.conv1d.kernel_size[0] - 1, self.conv1d.in_channels), dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        return (hidden,)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        return access.flat(access.convolve(self.name, access.dense(inputs[0]), self.conv1d.weight.squeeze(1), None))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        return mixed + inputs[0]


class RelativeAttention(PagedMixer):
    """Takes queries, keys, values and the mix of biases side by side."""

    label = "full attention"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.heads, self.kv_heads, self.head_dim = shape.num_heads, shape.num_kv_heads, shape.head_dim
        self.q_norm = RMSNorm(self.head_dim, shape.style.norm_eps)
        self.k_norm = RMSNorm(self.head_dim, shape.style.norm_eps)
        self.bias = nn.Parameter(torch.randn(RELATIVE_DIM, RELATIVE_EXTENT))
        self.o_proj = nn.Linear(self.heads * self.head_dim, shape.hidden_size, bias=False)

    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        row = (self.kv_heads, self.head_dim)
        return {"key": (row, dtype), "value": (row, dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        kv = self.kv_heads * self.head_dim
        sizes = [self.heads * self.head_dim, self.heads * RELATIVE_DIM, kv, kv]
        query, relative, key, value = torch.split(hidden, sizes, dim=-1)
        query, key = self.q_norm(heads(query, self.heads)), self.k_norm(heads(key, self.kv_heads))
        return query, key, heads(value, self.kv_heads), heads(relative, self.heads) @ self.bias

    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        query, key, value, by_distance = inputs
        access.write("key", key)
        access.write("value", value)
        distance = access.distances()[:, None, :].expand(-1, self.heads, -1)
        near = (distance >= 0) & (distance < RELATIVE_EXTENT)
        bias = by_distance.gather(-1, distance.clamp(0, RELATIVE_EXTENT - 1)) * near
        weights = access.attend(grouped_scores(query, access.read("key")) / self.head_dim + bias)
        return grouped_values(weights.to(value.dtype), access.read("value"))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        out: Tensor = self.o_proj(mixed)
        return out


@family("inkling:attention+shortconv")
class ConvolvedBlock(Mixing):
    """Projections, the convolution of keys and values, the attention, the convolution of its output."""

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        width, kv = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, width, bias=False)
        self.r_proj = nn.Linear(shape.hidden_size, shape.num_heads * RELATIVE_DIM, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, kv, bias=False)
        self.kv_sconv = ResidualConvolution(layer, 2 * kv, shape.conv_kernel, "kv_conv")
        self.attention = RelativeAttention(shape, layer)
        self.attn_sconv = ResidualConvolution(layer, shape.hidden_size, shape.conv_kernel, "attn_conv")

    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        both = torch.cat([self.k_proj(hidden), self.v_proj(hidden)], dim=-1)
        kv = self.kv_sconv(both, positions, backend)
        rows = torch.cat([self.q_proj(hidden), self.r_proj(hidden), kv], dim=-1)
        out: Tensor = self.attn_sconv(self.attention(rows, positions, backend), positions, backend)
        return out


@family("inkling:after_feed_forward")
def _after(shape: ModelShape, layer: int) -> ResidualConvolution:
    return ResidualConvolution(layer, shape.hidden_size, shape.conv_kernel, "mlp_conv")
