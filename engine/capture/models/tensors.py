"""Views that every family takes."""

from __future__ import annotations

from torch import Tensor


def heads(rows: Tensor, count: int) -> Tensor:
    """``[..., count * dim]`` as ``[..., count, dim]``."""
    return rows.reshape(*rows.shape[:-1], count, rows.shape[-1] // count)


def grouped(rows: Tensor, groups: int) -> Tensor:
    """``[T, groups * members, ...]`` as ``[T, groups, members, ...]``."""
    return rows.reshape(rows.shape[0], groups, rows.shape[1] // groups, *rows.shape[2:])
