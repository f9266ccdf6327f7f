"""Softmax attention with grouped key-value heads: whole context, sliding window, or chunks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.models.mixer import PagedMixer, family
from engine.capture.models.norm import RMSNorm
from engine.capture.models.rotary import rotate
from engine.capture.models.tensors import grouped, heads
from engine.capture.shape import ModelShape


class Attention(PagedMixer):
    """Rotary positions, ``num_kv_heads`` shared by groups of query heads (MHA, GQA and MQA alike).

    ``window`` and ``chunk`` are in tokens. What else there is, head norms, sinks, biases, an output gate, is the
    shape's style; with a gate each query head's projection holds the gate of that head after it.
    """

    label = "full attention"

    def __init__(self, shape: ModelShape, layer: int, *, window: int | None = None, chunk: int | None = None) -> None:
        super().__init__(layer)
        style = shape.style
        self.heads, self.kv_heads, self.head_dim = shape.num_heads, shape.num_kv_heads, shape.head_dim
        self.window, self.chunk = window, chunk
        self.rotated, self.base, self.fraction = style.rope != "none", style.rope_theta, style.rotary_fraction
        self.key_by = style.multipliers.key
        self.score_by = self.head_dim**-0.5 if style.multipliers.attention is None else style.multipliers.attention
        self.gated = style.output_gate
        width, bias = self.heads * self.head_dim, style.qkv_bias
        self.q_proj = nn.Linear(shape.hidden_size, 2 * width if self.gated else width, bias=bias)
        self.k_proj = nn.Linear(shape.hidden_size, self.kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(shape.hidden_size, self.kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(width, shape.hidden_size, bias=style.output_bias)
        self.q_norm = RMSNorm(self.head_dim, style.norm_eps) if style.head_norm else nn.Identity()
        self.k_norm = RMSNorm(self.head_dim, style.norm_eps) if style.head_norm else nn.Identity()
        self.sinks = nn.Parameter(torch.randn(self.heads)) if style.sinks else None

    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        row = (self.kv_heads, self.head_dim)
        return {"key": (row, dtype), "value": (row, dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        query, gate = heads(self.q_proj(hidden), self.heads), hidden
        if self.gated:
            query, gate = query.chunk(2, dim=-1)
        query = self.q_norm(query)
        key = self.k_norm(heads(self.k_proj(hidden), self.kv_heads) * self.key_by)
        value = heads(self.v_proj(hidden), self.kv_heads)
        if self.rotated:
            query = rotate(query, positions, self.base, self.fraction)
            key = rotate(key, positions, self.base, self.fraction)
        return query, key, value, gate

    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        query, key, value, _ = inputs
        access.write("key", key)
        access.write("value", value)
        scores = grouped_scores(query, access.read("key")) * self.score_by
        weights = access.attend(scores, window=self.window, chunk=self.chunk, sinks=self.sinks)
        return grouped_values(weights.to(value.dtype), access.read("value"))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.o_proj(mixed * inputs[3].flatten(1).sigmoid() if self.gated else mixed)
        return out


def grouped_scores(query: Tensor, keys: Tensor) -> Tensor:
    """``[T, heads, context]`` products of ``[T, heads, dim]`` and ``[T, context, key-value heads, dim]``."""
    return torch.einsum("tgqd,tcgd->tgqc", grouped(query, keys.shape[2]), keys).flatten(1, 2)


def grouped_values(weights: Tensor, values: Tensor) -> Tensor:
    """The values weighed, ``[T, heads * dim]``."""
    return torch.einsum("tgqc,tcgd->tgqd", grouped(weights, values.shape[2]), values).flatten(1)


@family("attention")
def _full(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer)


@family("sliding_attention")
def _sliding(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer, window=shape.sliding_window)


@family("chunked_attention")
def _chunked(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer, chunk=shape.attention_chunk)
