"""Rotary position embedding (Su et al. 2021), halves rotated against each other."""

from __future__ import annotations

import torch
from torch import Tensor

BASE = 10000.0


def rotate(heads: Tensor, positions: Tensor, base: float = BASE, fraction: float = 1.0) -> Tensor:
    """``[T, heads, dim]`` turned by the angles of ``positions`` ``[T]``.

    Only the first ``fraction`` of the dimensions turns; an odd last one of them stays as it is.
    """
    half = round(heads.shape[-1] * fraction) // 2
    steps = torch.arange(half, device=heads.device, dtype=torch.float32) / max(half, 1)
    angles = positions[:, None].float() * base**-steps
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    first, second, rest = heads[..., :half].float(), heads[..., half : 2 * half].float(), heads[..., 2 * half :]
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(heads.dtype)
    return torch.cat([turned, rest], dim=-1)


def rotate_pairs(heads: Tensor, positions: Tensor, base: float = BASE) -> Tensor:
    """As :func:`rotate` for weights that lay neighbouring dimensions out as pairs; the result has halves."""
    return rotate(torch.cat([heads[..., 0::2], heads[..., 1::2]], dim=-1), positions, base)
