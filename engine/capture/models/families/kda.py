"""Kimi delta attention (Kimi team 2025, "Kimi Linear"): the gated delta rule with a decay for each key channel.

Parameters carry the names and layouts of transformers' KimiLinearDeltaAttention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.families.gdn import delta_step, unit
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.norm import RMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class ForgetGate(nn.Module):
    """Low-rank: ``-exp(A_log) * softplus(f_b(f_a(x)) + dt_bias)``, one log decay for each key channel."""

    def __init__(self, hidden_size: int, num_heads: int, head_dim: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.f_a_proj = nn.Linear(hidden_size, head_dim, bias=False)
        self.f_b_proj = nn.Linear(head_dim, num_heads * head_dim, bias=False)
        self.dt_bias = nn.Parameter(torch.randn(num_heads * head_dim))
        self.A_log = nn.Parameter(torch.empty(1, 1, num_heads, 1).uniform_(0.1, 4.0).log())

    def forward(self, hidden: Tensor) -> Tensor:
        gate = heads(self.f_b_proj(self.f_a_proj(hidden)).float() + self.dt_bias.float(), self.num_heads)
        return -self.A_log.float().exp()[0] * functional.softplus(gate)


class KimiDeltaAttention(RecurrentMixer):
    """As many key as value heads, of the same dimension."""

    label = "KDA (Kimi delta attention)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim = shape.linear_key_heads, shape.linear_key_dim
        self.width = self.num_heads * self.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, self.width, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, self.width, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, self.width, bias=False)
        self.conv1d = nn.Conv1d(3 * self.width, 3 * self.width, shape.conv_kernel, groups=3 * self.width, bias=False)
        self.forget_gate = ForgetGate(shape.hidden_size, self.num_heads, self.head_dim)
        self.b_proj = nn.Linear(shape.hidden_size, self.num_heads, bias=False)
        self.g_a_proj = nn.Linear(shape.hidden_size, self.head_dim, bias=False)
        self.g_b_proj = nn.Linear(self.head_dim, self.width, bias=False)
        self.o_norm = RMSNorm(self.head_dim, shape.style.norm_eps)
        self.o_proj = nn.Linear(self.width, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "conv": ((self.conv1d.kernel_size[0] - 1, 3 * self.width), dtype),
            "recurrent": ((self.num_heads, self.head_dim, self.head_dim), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        mixed = torch.cat([self.q_proj(hidden), self.k_proj(hidden), self.v_proj(hidden)], dim=-1)
        gate = heads(self.g_b_proj(self.g_a_proj(hidden)), self.num_heads)
        return mixed, self.forget_gate(hidden), self.b_proj(hidden), gate

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        mixed, decay, beta, _ = inputs
        mixed = access.convolve("conv", access.dense(mixed), self.conv1d.weight.squeeze(1), None)
        query, key, value = (heads(part, self.num_heads) for part in functional.silu(mixed).float().chunk(3, dim=-1))
        out = access.scan(
            "recurrent",
            delta_step,
            unit(query) * self.head_dim**-0.5,
            unit(key),
            value,
            access.dense(decay).exp(),
            access.dense(beta).float().sigmoid(),
        )
        return access.flat(out.to(inputs[0].dtype))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        normed = (self.o_norm(mixed) * inputs[3].float().sigmoid()).to(mixed.dtype)
        out: Tensor = self.o_proj(normed.flatten(1))
        return out


@family("kda")
def _kda(shape: ModelShape, layer: int) -> KimiDeltaAttention:
    return KimiDeltaAttention(shape, layer)
