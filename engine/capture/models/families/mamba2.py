"""Mamba-2 (Dao & Gu 2024, "Transformers are SSMs"): a scalar decay for each head, shared input and output maps a group.

Parameters carry the names and layouts of transformers' Mamba2Mixer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.norm import GroupRMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape


class Mamba2(RecurrentMixer):
    """``linear_value_heads`` heads of ``linear_value_dim`` channels, ``linear_groups`` groups of ``state_size``."""

    label = "Mamba-2"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim = shape.linear_value_heads, shape.linear_value_dim
        self.groups, self.state_size = shape.linear_groups, shape.state_size
        self.inner = self.num_heads * self.head_dim
        self.channels = self.inner + 2 * self.groups * self.state_size
        self.conv1d = nn.Conv1d(self.channels, self.channels, shape.conv_kernel, groups=self.channels)
        self.in_proj = nn.Linear(shape.hidden_size, self.inner + self.channels + self.num_heads, bias=False)
        self.dt_bias = nn.Parameter(torch.randn(self.num_heads))
        self.A_log = nn.Parameter(torch.empty(self.num_heads).uniform_(0.1, 4.0).log())
        self.D = nn.Parameter(torch.ones(self.num_heads))
        by = shape.style.multipliers.ssm
        sizes = [self.inner, self.inner, maps := self.groups * self.state_size, maps, self.num_heads]
        factors = torch.cat([torch.full((size,), factor) for size, factor in zip(sizes, by, strict=True)])
        self.register_buffer("part_by", factors, persistent=False)
        self.scaled = set(by) != {1.0}
        groups = self.groups if shape.style.mamba2_norm == "grouped" else 1
        normed = shape.style.mamba2_norm != "none"
        self.norm = GroupRMSNorm(self.inner, groups, shape.style.norm_eps) if normed else nn.Identity()
        self.out_proj = nn.Linear(self.inner, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "conv": ((self.conv1d.kernel_size[0] - 1, self.channels), dtype),
            "recurrent": ((self.num_heads, self.head_dim, self.state_size), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        parts = self.in_proj(hidden)
        parts = parts * self.get_buffer("part_by") if self.scaled else parts
        gate, mixed, step = torch.split(parts, [self.inner, self.channels, self.num_heads], dim=-1)
        return mixed, step, gate

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        mixed, step, _ = inputs
        mixed = access.convolve("conv", access.dense(mixed), self.conv1d.weight.squeeze(1), self.conv1d.bias)
        maps = self.groups * self.state_size
        x, b, c = torch.split(functional.silu(mixed).float(), [self.inner, maps, maps], dim=-1)
        x = heads(x, self.num_heads)
        share = self.num_heads // self.groups
        b = heads(b, self.groups).repeat_interleave(share, dim=2)
        c = heads(c, self.groups).repeat_interleave(share, dim=2)
        delta = functional.softplus(access.dense(step).float() + self.dt_bias.float())
        decay = (-self.A_log.float().exp() * delta).exp()
        out = access.scan("recurrent", _step, x * delta[..., None], b, c, decay)
        return access.flat((out + x * self.D.float()[:, None]).to(inputs[0].dtype).flatten(2))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        gated = (mixed.float() * functional.silu(inputs[2].float())).to(mixed.dtype)
        out: Tensor = self.out_proj(self.norm(gated))
        return out


def _step(state: Tensor, x: Tensor, b: Tensor, c: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    state = state * decay[..., None, None] + x[..., None] * b[..., None, :]
    return state, torch.einsum("rhdn,rhn->rhd", state, c)


@family("mamba2")
def _mamba2(shape: ModelShape, layer: int) -> Mamba2:
    return Mamba2(shape, layer)
