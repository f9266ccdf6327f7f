"""Root-mean-square norms, plain and gated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class RMSNorm(nn.Module):
    """``x / rms(x) * weight``."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


class GatedRMSNorm(RMSNorm):
    """Norm first, then times ``silu(gate)``."""

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:  # type: ignore[override]  # a gate is what makes it this norm
        return (super().forward(x) * functional.silu(gate.float())).to(x.dtype)
