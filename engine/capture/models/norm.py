"""Root-mean-square norms, plain and gated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.capture.models.tensors import heads


class RMSNorm(nn.Module):
    """``x / rms(x) * weight``; without ``weighted`` the weight is one and no parameter."""

    def __init__(self, size: int, eps: float = 1e-6, *, weighted: bool = True) -> None:
        super().__init__()
        self.weight: Tensor
        if weighted:
            self.weight = nn.Parameter(torch.ones(size))
        else:
            self.register_buffer("weight", torch.ones(size), persistent=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


class GatedRMSNorm(RMSNorm):
    """Norm first, then times ``silu(gate)``."""

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:  # type: ignore[override]  # a gate is what makes it this norm
        return (super().forward(x) * functional.silu(gate.float())).to(x.dtype)


class GroupRMSNorm(RMSNorm):
    """Each of ``groups`` equal parts of the channels by its own root mean square."""

    def __init__(self, size: int, groups: int, eps: float = 1e-6) -> None:
        super().__init__(size, eps)
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        parts = heads(x.float(), self.groups)
        normed: Tensor = parts * torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * normed.flatten(-2).to(x.dtype)
