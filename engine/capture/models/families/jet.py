"""JetBlock (Gu et al. 2025, "Jet-Nemotron"): a gated delta rule whose values pass a dynamic convolution.

Its taps are computed from each token: a small network gives every value channel its own. Keys and queries have no
convolution. Parameters carry the names of SGLang 0.5.23, models/jet_nemotron.py, where the projections are one.
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
from engine.capture.models.norm import GatedRMSNorm
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape

REDUCTION = 8
"""Value channels for each inner channel of the kernel generator (``dconv_generator_reduction`` of both models)."""


class KernelGenerator(nn.Module):
    """``w2(silu(w1(x)))``: the taps of every value channel, from one token."""

    def __init__(self, hidden_size: int, channels: int, taps: int) -> None:
        super().__init__()
        inner = max(1, channels // REDUCTION)
        self.w1 = nn.Linear(hidden_size, inner, bias=False)
        self.w2 = nn.Linear(inner, channels * taps)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(functional.silu(self.w1(x)))
        return out


class JetBlock(RecurrentMixer):
    """As many key as value heads."""

    label = "JetBlock (gated delta rule, dynamic convolution)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads = shape.linear_key_heads
        self.k_dim, self.v_dim, self.taps = shape.linear_key_dim, shape.linear_value_dim, shape.conv_kernel
        self.keys, self.values = self.num_heads * self.k_dim, self.num_heads * self.v_dim
        self.parts = [self.keys, self.keys, self.values, self.num_heads, self.num_heads, self.values]
        self.qkvabz_proj = nn.Linear(shape.hidden_size, sum(self.parts), bias=False)
        self.kernel_generator = KernelGenerator(shape.hidden_size, self.values, self.taps)
        self.dt_bias = nn.Parameter(torch.ones(self.num_heads))
        self.A_log = nn.Parameter(torch.empty(self.num_heads).uniform_(0.1, 4.0).log())
        self.o_norm = GatedRMSNorm(self.v_dim, 1e-5)
        self.o_proj = nn.Linear(self.values, shape.hidden_size, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {
            "conv": ((self.taps - 1, self.values), dtype),
            "recurrent": ((self.num_heads, self.k_dim, self.v_dim), torch.float32),
        }

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        query, key, value, alpha, beta, gate = torch.split(self.qkvabz_proj(hidden), self.parts, dim=-1)
        taps = heads(self.kernel_generator(hidden), self.values)
        return query, key, value, alpha, beta, taps, heads(gate, self.num_heads)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        query, key, value, alpha, beta, taps = (access.dense(part) for part in inputs[:6])
        value = functional.silu(access.convolve("conv", value, taps, None)).float()
        query = unit(heads(functional.silu(query).float(), self.num_heads))
        key = unit(heads(functional.silu(key).float(), self.num_heads))
        decay = (-self.A_log.float().exp() * functional.softplus(alpha.float() + self.dt_bias)).exp()
        out = access.scan(
            "recurrent",
            delta_step,
            query * self.k_dim**-0.5,
            key,
            heads(value, self.num_heads),
            decay,
            beta.float().sigmoid(),
        )
        return access.flat(out.to(inputs[0].dtype))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.o_proj(self.o_norm(mixed, inputs[6]).flatten(1))
        return out


@family("jet:gdn")
def _jet(shape: ModelShape, layer: int) -> JetBlock:
    return JetBlock(shape, layer)
