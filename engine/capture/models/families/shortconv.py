"""Short convolution (Liquid AI 2025, LFM2): a gated causal convolution; its window is all the state there is.

Parameters carry the names and layouts of transformers' Lfm2ShortConv.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.capture.attention.pools import Shapes
from engine.capture.attention.ragged import RaggedAccess
from engine.capture.models.mixer import RecurrentMixer, family
from engine.capture.shape import ModelShape


class ShortConv(RecurrentMixer):
    """Gates before and after the convolution, all of width ``hidden_size``."""

    label = "short convolution"

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__(layer)
        self.width = shape.hidden_size
        self.conv = nn.Conv1d(self.width, self.width, shape.conv_kernel, groups=self.width, bias=False)
        self.in_proj = nn.Linear(self.width, 3 * self.width, bias=False)
        self.out_proj = nn.Linear(self.width, self.width, bias=False)

    def state_shapes(self, dtype: torch.dtype) -> Shapes:
        return {"conv": ((self.conv.kernel_size[0] - 1, self.width), dtype)}

    def project(self, hidden: Tensor, positions: Tensor) -> Sequence[Tensor]:  # noqa: ARG002 - the contract of a mixer
        before, after, x = self.in_proj(hidden).chunk(3, dim=-1)
        return before * x, after

    def mix(self, inputs: Sequence[Tensor], access: RaggedAccess) -> Tensor:
        return access.flat(access.convolve("conv", access.dense(inputs[0]), self.conv.weight.squeeze(1), None))

    def output(self, mixed: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out: Tensor = self.out_proj(inputs[1] * mixed)
        return out


@family("shortconv")
def _shortconv(shape: ModelShape, layer: int) -> ShortConv:
    return ShortConv(shape, layer)
