"""Ring-linear's lightning attention (Ling team 2025, "Every Attention Matters"): normed, rotated heads, a group norm.

The recurrence is lightning attention's; queries and keys are normed and turned first, the output is normed in groups
and gated. Parameters carry the names of SGLang 0.5.23, models/bailing_moe_linear.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.families.lightning import lightning_scan, slopes
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.models.norm import GroupRMSNorm, RMSNorm
from engine.capture.models.rotary import rotate
from engine.capture.models.tensors import heads
from engine.capture.shape import ModelShape

NORM_GROUPS = 4
"""``group_norm_size`` of the published models, where that many divide the channels."""


class BailingLightningAttention(RecurrentMixer):
    """One slope a head, weaker in later layers: ``(1 - layer / (layers - 1) + 1e-5)`` of the first layer's."""

    label = "lightning attention (Bailing)"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.num_heads, self.head_dim = shape.linear_key_heads, shape.linear_key_dim
        self.base, self.fraction = shape.style.rope_theta, shape.style.rotary_fraction
        width, eps = self.num_heads * self.head_dim, shape.style.norm_eps
        self.query_key_value = nn.Linear(shape.hidden_size, 3 * width, bias=False)
        self.query_layernorm = RMSNorm(self.head_dim, eps)
        self.key_layernorm = RMSNorm(self.head_dim, eps)
        self.g_proj = nn.Linear(shape.hidden_size, width, bias=False)
        self.g_norm = GroupRMSNorm(width, NORM_GROUPS if width % NORM_GROUPS == 0 else 1, eps)
        self.dense = nn.Linear(width, shape.hidden_size, bias=False)
        depth = 1 - layer / max(1, len(shape.layer_kinds) - 1) + 1e-5
        self.register_buffer("slope", slopes(self.num_heads) * depth)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:  # noqa: ARG002 - the contract of a mixer
        return {"recurrent": ((self.num_heads, self.head_dim, self.head_dim), torch.float32)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:
        query, key, value = (heads(part, self.num_heads) for part in self.query_key_value(hidden).chunk(3, dim=-1))
        query = rotate(self.query_layernorm(query), positions, self.base, self.fraction)
        key = rotate(self.key_layernorm(key), positions, self.base, self.fraction)
        return query * self.head_dim**-0.5, key, value, self.g_proj(hidden)

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        return lightning_scan(access, self.get_buffer("slope"), inputs)

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.dense(self.g_norm(mixed.flatten(1)) * inputs[3].sigmoid())
        return out


@family("bailing:lightning")
def _bailing(shape: ModelShape, layer: int) -> BailingLightningAttention:
    return BailingLightningAttention(shape, layer)
