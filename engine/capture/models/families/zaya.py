"""Compressed convolutional attention (Zyphra 2025, ZAYA): queries and keys pass two convolutions before they attend.

Half of each value row is the previous token's. Parameters carry the names and layouts of transformers' ZayaAttention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.families.attention import grouped_scores, grouped_values
from engine.capture.models.mixer import Mixing, PagedMixer, RecurrentMixer, family
from engine.capture.models.rotary import rotate
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class ConvolvedProjection(RecurrentMixer):
    """Queries, keys and values side by side; keeps the last tokens' projections and the last token's value half."""

    label = "short convolution (ZAYA)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.heads, self.kv_heads, self.head_dim = shape.num_heads, shape.num_kv_heads, shape.head_dim
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        channels, groups, taps = queries + keys, self.heads + self.kv_heads, shape.conv_kernel
        self.split = [queries, keys]
        self.window = 2 * (taps - 1)
        self.q_proj = nn.Linear(shape.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, keys, bias=False)
        self.v_proj_current = nn.Linear(shape.hidden_size, keys // 2, bias=False)
        self.v_proj_delayed = nn.Linear(shape.hidden_size, keys // 2, bias=False)
        self.conv_qk_depthwise = nn.Conv1d(channels, channels, taps, groups=channels)
        self.conv_qk_grouped = nn.Conv1d(channels, channels, taps, groups=groups)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "conv": ((self.window, sum(self.split)), dtype),
            "value": ((1, self.split[1] // 2), dtype),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        both = torch.cat([self.q_proj(hidden), self.k_proj(hidden)], dim=-1)
        return both, self.v_proj_delayed(hidden), self.v_proj_current(hidden)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        both, delayed = access.dense(inputs[0]), access.dense(inputs[1])
        window = access.window("conv", both, self.window).transpose(1, 2)
        convolved = self.conv_qk_grouped(self.conv_qk_depthwise(window)).transpose(1, 2)
        before = access.window("value", delayed, 1)[:, :-1]
        return access.flat(torch.cat([convolved, before], dim=-1))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        query, key = torch.split(inputs[0], self.split, dim=-1)
        share = self.heads // self.kv_heads
        query = (heads(query, self.heads) + heads(key, self.kv_heads).repeat_interleave(share, dim=1)) * 0.5
        key = query.reshape(-1, self.kv_heads, share, self.head_dim).mean(dim=2)
        convolved, before = mixed[:, : sum(self.split)], mixed[:, sum(self.split) :]
        beside = torch.cat([query.flatten(1), key.flatten(1)], dim=-1)
        return torch.cat([convolved + beside, inputs[2], before], dim=-1)


class ConvolvedAttention(PagedMixer):
    """Takes queries, keys and values side by side; both are of length ``head_dim ** 0.5``, keys scaled by head."""

    label = "full attention"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.heads, self.kv_heads, self.head_dim = shape.num_heads, shape.num_kv_heads, shape.head_dim
        self.base, self.fraction = shape.style.rope_theta, shape.style.rotary_fraction
        self.temp = nn.Parameter(torch.ones(self.kv_heads))
        self.o_proj = nn.Linear(self.heads * self.head_dim, shape.hidden_size, bias=False)

    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        row = (self.kv_heads, self.head_dim)
        return {"key": (row, dtype), "value": (row, dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        sizes = [count * self.head_dim for count in (self.heads, self.kv_heads, self.kv_heads)]
        query, key, value = torch.split(hidden, sizes, dim=-1)
        query = functional.normalize(heads(query, self.heads), dim=-1) * self.head_dim**0.5
        key = functional.normalize(heads(key, self.kv_heads), dim=-1) * (self.head_dim**0.5 * self.temp[:, None])
        turned = (rotate(rows, positions, self.base, self.fraction) for rows in (query, key))
        return *turned, heads(value, self.kv_heads)

    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        query, key, value = inputs
        access.write("key", key)
        access.write("value", value)
        weights = access.attend(grouped_scores(query, access.read("key")) * self.head_dim**-0.5)
        return grouped_values(weights.to(value.dtype), access.read("value"))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        out: Tensor = self.o_proj(mixed)
        return out


@family("zaya:attention+shortconv")
class CompressedConvolutionalAttention(Mixing):
    """The projection with its convolutions, then the attention."""

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        self.projection = ConvolvedProjection(shape, layer)
        self.attention = ConvolvedAttention(shape, layer)

    def forward(self, hidden: Tensor, positions: Tensor, backend: AttentionBackend) -> Tensor:
        out: Tensor = self.attention(self.projection(hidden, positions, backend), positions, backend)
        return out
