"""Softmax attention with grouped key-value heads: whole context, sliding window, or chunks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.models.mixer import PagedMixer, family
from engine.capture.models.rotary import rotate
from engine.capture.models.tensors import grouped, heads
from engine.capture.shape import ModelShape


class Attention(PagedMixer):
    """Rotary positions, ``num_kv_heads`` shared by groups of query heads (MHA, GQA and MQA alike).

    ``window`` and ``chunk`` are in tokens.
    """

    label = "full attention"

    def __init__(self, shape: ModelShape, layer: int, *, window: int | None = None, chunk: int | None = None) -> None:
        super().__init__(layer)
        self.heads, self.kv_heads, self.head_dim = shape.num_heads, shape.num_kv_heads, shape.head_dim
        self.window, self.chunk = window, chunk
        self.q_proj = nn.Linear(shape.hidden_size, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, shape.hidden_size, bias=False)

    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        row = (self.kv_heads, self.head_dim)
        return {"key": (row, dtype), "value": (row, dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        query = heads(self.q_proj(hidden), self.heads)
        key = heads(self.k_proj(hidden), self.kv_heads)
        value = heads(self.v_proj(hidden), self.kv_heads)
        return rotate(query, positions), rotate(key, positions), value

    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        query, key, value = inputs
        access.write("key", key)
        access.write("value", value)
        queries = grouped(query, self.kv_heads)
        scores = torch.einsum("tgqd,tcgd->tgqc", queries, access.read("key")) * self.head_dim**-0.5
        weights = access.attend(scores.flatten(1, 2), window=self.window, chunk=self.chunk)
        weights = grouped(weights.to(value.dtype), self.kv_heads)
        return torch.einsum("tgqc,tcgd->tgqd", weights, access.read("value")).flatten(1)

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        out: Tensor = self.o_proj(mixed)
        return out


@family("attention")
def _full(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer)


@family("sliding_attention")
def _sliding(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer, window=shape.sliding_window)


@family("chunked_attention")
def _chunked(shape: ModelShape, layer: int) -> Attention:
    return Attention(shape, layer, chunk=shape.attention_chunk)
