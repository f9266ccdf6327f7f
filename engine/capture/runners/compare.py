"""How far one pass is from another: outputs, the state that its requests own, and everybody else's."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.pools import Pools

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference, relative to the eager tensor's largest magnitude. Replay and eager run the same operators and
differ only by the shapes that padding gives them: rounding, several times over, in that type."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The largest absolute difference, and the largest relative one: to the largest magnitude of the tensor that the
    absolute one is in. Whatever is not finite counts as the largest number there is."""

    absolute: float = 0.0
    relative: float = 0.0

    def widened(self, actual: Tensor, expected: Tensor, scale: Tensor | None = None) -> Distance:
        """This one and the pair's, the larger of each; ``scale``: the values to take the magnitude from, where not from
        ``expected``."""
        if actual.numel() == 0:
            return self
        gap = float((actual.double() - expected.double()).abs().max())
        values = expected if scale is None or scale.numel() == 0 else scale
        size = max(float(values.double().abs().max()), 1e-6)
        return Distance(max(self.absolute, _finite(gap)), max(self.relative, _finite(gap / size)))


def outputs_apart(actual: Tensor, expected: Tensor) -> Distance:
    """Between the rows of two outputs; other shapes are as far apart as can be."""
    if actual.shape != expected.shape:
        return Distance(sys.float_info.max, sys.float_info.max)
    return Distance().widened(actual, expected)


class Ownership:
    """Which rows of the pools the requests of some passes may write."""

    def __init__(self, pools: Pools, batches: Sequence[ForwardBatch]) -> None:
        requests, device = pools.requests, pools.requests.table.device
        self._pools = pools
        self._kv = torch.zeros(pools.kv.reserved + pools.kv.slots, dtype=torch.bool, device=device)
        self._states = torch.zeros(pools.states.reserved + pools.states.slots, dtype=torch.bool, device=device)
        for batch in batches:
            self._kv[batch.out_cache_loc] = True
            self._states[requests.state_index[batch.req_pool_indices]] = True
            if batch.tracking is not None:
                self._states[batch.tracking.indices[batch.tracking.mask]] = True

    def apart(self, expected: Sequence[Tensor]) -> Distance:
        """Between the pools as they are and ``expected``, a snapshot; the reserved rows aside."""
        distance = Distance()
        for (tensor, owned, reserved), other in zip(self._rows(), expected, strict=True):
            distance = distance.widened(tensor[reserved:], other[reserved:], scale=other[owned])
        return distance

    def intruded(self, before: Sequence[Tensor]) -> int:
        """Rows of the pools that belong to none of the requests, nor to padding, and are not as in ``before``."""
        count = 0
        for (tensor, owned, reserved), other in zip(self._rows(), before, strict=True):
            changed = (tensor != other).flatten(1).any(1) & ~owned
            count += int(changed[reserved:].sum())
        return count

    def _rows(self) -> list[tuple[Tensor, Tensor, int]]:
        kv, states = self._pools.kv, self._pools.states
        return [
            *((tensor, self._kv, kv.reserved) for _, tensor in kv.named()),
            *((tensor, self._states, states.reserved) for _, tensor in states.named()),
        ]


def _finite(value: float) -> float:
    """JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else sys.float_info.max
