"""Mamba (Gu & Dao 2023): a decay for each channel and state, input-dependent maps, a low-rank time step.

Parameters carry the names and layouts of transformers' MambaMixer.
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
from engine.capture.shape import ModelShape


class Mamba(RecurrentMixer):
    """Twice ``hidden_size`` inner channels, time-step rank ``hidden_size / 16``, as the paper has them.

    Jamba norms time step, B and C, with weights; Falcon-Mamba does without.
    """

    label = "Mamba"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.inner, self.state_size = 2 * shape.hidden_size, shape.state_size
        self.rank = max(1, shape.hidden_size // 16)
        self.conv1d = nn.Conv1d(self.inner, self.inner, shape.conv_kernel, groups=self.inner)
        self.in_proj = nn.Linear(shape.hidden_size, 2 * self.inner, bias=False)
        self.x_proj = nn.Linear(self.inner, self.rank + 2 * self.state_size, bias=False)
        self.dt_proj = nn.Linear(self.rank, self.inner)
        self.A_log = nn.Parameter(torch.arange(1.0, self.state_size + 1).log().repeat(self.inner, 1))
        self.D = nn.Parameter(torch.ones(self.inner))
        self.out_proj = nn.Linear(self.inner, shape.hidden_size, bias=False)
        self.dt_layernorm = _inner_norm(shape, self.rank)
        self.b_layernorm = _inner_norm(shape, self.state_size)
        self.c_layernorm = _inner_norm(shape, self.state_size)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "conv": ((self.conv1d.kernel_size[0] - 1, self.inner), dtype),
            "recurrent": ((self.inner, self.state_size), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        mixed, gate = self.in_proj(hidden).chunk(2, dim=-1)
        return mixed, gate

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        dense = access.dense(inputs[0])
        x = functional.silu(access.convolve("conv", dense, self.conv1d.weight.squeeze(1), self.conv1d.bias))
        low, b, c = torch.split(self.x_proj(x), [self.rank, self.state_size, self.state_size], dim=-1)
        low, b, c = self.dt_layernorm(low), self.b_layernorm(b), self.c_layernorm(c)
        delta = functional.softplus(self.dt_proj(low).float())
        rate = -self.A_log.float().exp()

        def step(state: Tensor, delta_t: Tensor, x_t: Tensor, b_t: Tensor, c_t: Tensor) -> tuple[Tensor, Tensor]:
            state = state * (delta_t[..., None] * rate).exp() + (delta_t * x_t)[..., None] * b_t[:, None, :]
            return state, torch.einsum("rcn,rn->rc", state, c_t)

        out = access.scan("recurrent", step, delta, x.float(), b.float(), c.float())
        return access.flat((out + x.float() * self.D.float()).to(inputs[0].dtype))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.out_proj(mixed * functional.silu(inputs[1]))
        return out


def _inner_norm(shape: ModelShape, size: int) -> nn.Module:
    norms, eps = shape.style.mamba_norms, shape.style.mixer_eps or shape.style.norm_eps
    return nn.Identity() if norms == "none" else RMSNorm(size, eps, weighted=norms == "weighted")


@family("mamba")
def _mamba(shape: ModelShape, layer: int) -> Mamba:
    return Mamba(shape, layer)
