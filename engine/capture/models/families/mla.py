"""Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2): one compressed latent and one rotated key a token.

Computed absorbed, as engines do: queries go into the latent space, so that the cache is read as it is stored.
Parameters carry the names and layouts of transformers' DeepseekV3Attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Shapes
from engine.capture.models.mixer import PagedMixer, family
from engine.capture.models.norm import RMSNorm
from engine.capture.models.rotary import rotate, rotate_pairs
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class LatentAttention(PagedMixer):
    """``num_heads`` heads of ``head_dim`` unrotated and ``rope_dim`` rotated dimensions; values of ``head_dim``."""

    label = "multi-head latent attention"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim, self.rope_dim = shape.num_heads, shape.head_dim, shape.rope_dim
        self.rank = shape.kv_lora_rank
        self.rope, self.base = shape.style.rope, shape.style.rope_theta
        width = self.num_heads * (self.head_dim + self.rope_dim)
        self.q_proj = None if shape.q_lora_rank else nn.Linear(shape.hidden_size, width, bias=False)
        if shape.q_lora_rank:
            self.q_a_proj = nn.Linear(shape.hidden_size, shape.q_lora_rank, bias=False)
            self.q_a_layernorm = RMSNorm(shape.q_lora_rank)
            self.q_b_proj = nn.Linear(shape.q_lora_rank, width, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(shape.hidden_size, self.rank + self.rope_dim, bias=False)
        self.kv_a_layernorm = RMSNorm(self.rank)
        self.kv_b_proj = nn.Linear(self.rank, self.num_heads * 2 * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.num_heads * self.head_dim, shape.hidden_size, bias=False)

    def token_shapes(self, dtype: torch.dtype) -> Shapes:
        return {"latent": ((self.rank,), dtype), "rotated": ((self.rope_dim,), dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        if self.q_proj is not None:
            query = self.q_proj(hidden)
        else:
            query = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden)))
        plain, turning = torch.split(heads(query, self.num_heads), [self.head_dim, self.rope_dim], dim=-1)
        latent, key = torch.split(self.kv_a_proj_with_mqa(hidden), [self.rank, self.rope_dim], dim=-1)
        absorbed = torch.einsum("thd,hdr->thr", plain, self._expansion()[0])
        key = self._turned(key[:, None], positions)[:, 0]
        return absorbed, self._turned(turning, positions), self.kv_a_layernorm(latent), key

    def _turned(self, rows: Tensor, positions: Tensor) -> Tensor:
        if self.rope == "none":
            return rows
        return (rotate_pairs if self.rope == "pairs" else rotate)(rows, positions, self.base)

    def mix(self, inputs: Sequence[Tensor], access: PagedAccess) -> Tensor:
        absorbed, turned, latent, key = inputs
        access.write("latent", latent)
        access.write("rotated", key)
        context = access.read("latent")
        scores = torch.einsum("thr,tcr->thc", absorbed, context)
        scores = scores + torch.einsum("thd,tcd->thc", turned, access.read("rotated"))
        weights = access.attend(scores * (self.head_dim + self.rope_dim) ** -0.5).to(latent.dtype)
        return torch.einsum("thc,tcr->thr", weights, context)

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:  # noqa: ARG002 - the contract of a mixer
        out: Tensor = self.o_proj(torch.einsum("thr,hdr->thd", mixed, self._expansion()[1]).flatten(1))
        return out

    def _expansion(self) -> tuple[Tensor, Tensor]:
        """From the latent to keys and to values, ``[heads, head_dim, rank]`` each."""
        weight = self.kv_b_proj.weight.view(self.num_heads, 2 * self.head_dim, self.rank)
        return weight[:, : self.head_dim], weight[:, self.head_dim :]


@family("mla")
def _mla(shape: ModelShape, layer: int) -> LatentAttention:
    return LatentAttention(shape, layer)
