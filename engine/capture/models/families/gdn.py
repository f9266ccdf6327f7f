"""Gated delta net (Yang et al. 2024, "Gated Delta Networks"), in the parametrisation of Qwen3-Next.

Parameters carry the names and layouts of transformers' Qwen3NextGatedDeltaNet, so that its weights load as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.norm import GatedRMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class GatedDeltaNet(RecurrentMixer):
    """A matrix state for each value head, decayed by a gate and corrected towards the new value (delta rule)."""

    label = "GDN (gated delta net)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.k_heads, self.v_heads = shape.linear_key_heads, shape.linear_value_heads
        self.k_dim, self.v_dim = shape.linear_key_dim, shape.linear_value_dim
        self.keys, self.values = self.k_heads * self.k_dim, self.v_heads * self.v_dim
        channels = 2 * self.keys + self.values
        self.conv1d = nn.Conv1d(channels, channels, shape.conv_kernel, groups=channels, bias=False)
        self.in_proj_qkvz = nn.Linear(shape.hidden_size, 2 * self.keys + 2 * self.values, bias=False)
        self.in_proj_ba = nn.Linear(shape.hidden_size, 2 * self.v_heads, bias=False)
        self.dt_bias = nn.Parameter(torch.ones(self.v_heads))
        self.A_log = nn.Parameter(torch.empty(self.v_heads).uniform_(0.1, 4.0).log())
        self.norm = GatedRMSNorm(self.v_dim, shape.style.norm_eps)
        self.out_proj = nn.Linear(self.values, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        taps = self.conv1d.kernel_size[0]
        return {
            "conv": ((taps - 1, 2 * self.keys + self.values), dtype),
            "recurrent": ((self.v_heads, self.k_dim, self.v_dim), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        # Both projections interleave by key head: each key head's block holds its own value heads.
        share = self.v_heads // self.k_heads
        blocks = heads(self.in_proj_qkvz(hidden), self.k_heads)
        sizes = [self.k_dim, self.k_dim, share * self.v_dim, share * self.v_dim]
        query, key, value, gate = torch.split(blocks, sizes, dim=-1)
        beta, alpha = heads(self.in_proj_ba(hidden), self.k_heads).chunk(2, dim=-1)
        mixed = torch.cat([query.flatten(1), key.flatten(1), value.flatten(1)], dim=-1)
        return mixed, beta.flatten(1), alpha.flatten(1), gate.reshape(-1, self.v_heads, self.v_dim)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        mixed, beta, alpha, _ = inputs
        mixed = access.convolve("conv", access.dense(mixed), self.conv1d.weight.squeeze(1), None)
        sizes = [self.keys, self.keys, self.values]
        query, key, value = torch.split(functional.silu(mixed).float(), sizes, dim=-1)
        share = self.v_heads // self.k_heads
        query = unit(heads(query, self.k_heads)).repeat_interleave(share, dim=2)
        key = unit(heads(key, self.k_heads)).repeat_interleave(share, dim=2)
        decay = (-self.A_log.float().exp() * functional.softplus(access.dense(alpha).float() + self.dt_bias)).exp()
        out = access.scan(
            "recurrent",
            delta_step,
            query * self.k_dim**-0.5,
            key,
            heads(value, self.v_heads),
            decay,
            access.dense(beta).float().sigmoid(),
        )
        return access.flat(out.to(inputs[0].dtype))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.out_proj(self.norm(mixed, inputs[3]).flatten(1))
        return out


def delta_step(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """One token of the gated delta rule: ``state`` ``[R, heads, keys, values]``; ``decay`` for each head, or for each
    head and key channel."""
    state = state * decay.view(*decay.shape, *[1] * (4 - decay.dim()))
    known = torch.einsum("rhkv,rhk->rhv", state, key)
    state = state + key[..., None] * ((value - known) * beta[..., None])[..., None, :]
    return state, torch.einsum("rhkv,rhk->rhv", state, query)


def unit(rows: Tensor) -> Tensor:
    """Each row divided by its length."""
    return rows * torch.rsqrt(rows.pow(2).sum(-1, keepdim=True) + 1e-6)


@family("gdn")
def _gdn(shape: ModelShape, layer: int) -> GatedDeltaNet:
    return GatedDeltaNet(shape, layer)
