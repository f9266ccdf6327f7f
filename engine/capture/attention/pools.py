"""Where state lives: requests to tokens, tokens to keys and values, requests to recurrent state.

Row 0 of every pool is reserved: padding reads and writes it, and nothing live is ever there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""What one layer keeps for each token, or for each request: name -> (shape, dtype)."""


class SlotPool:
    """For each layer, named tensors with one row a slot."""

    def __init__(self, layers: Mapping[int, Shapes], slots: int, device: torch.device) -> None:
        self.slots = slots
        self._tensors = {
            layer: {
                name: torch.zeros((slots + 1, *shape), dtype=dtype, device=device)
                for name, (shape, dtype) in shapes.items()
            }
            for layer, shapes in layers.items()
        }

    def layer(self, index: int) -> Mapping[str, Tensor]:
        """The tensors of one layer, by name; each ``[slots + 1, ...]``."""
        return self._tensors[index]

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor with a name for messages."""
        for layer, tensors in self._tensors.items():
            for name, tensor in tensors.items():
                yield f"layer {layer} {name}", tensor


class ReqToTokenPool:
    """``table[request row, position]`` is the key-value slot of that token; ``state_index[request row]`` the slot of
    the request's recurrent state."""

    def __init__(self, max_requests: int, max_context: int, device: torch.device) -> None:
        self.max_requests = max_requests
        self.max_context = max_context
        self.table = torch.zeros((max_requests + 1, max_context), dtype=torch.int64, device=device)
        self.state_index = torch.zeros((max_requests + 1,), dtype=torch.int64, device=device)

    def state_indices(self, req_pool_indices: Tensor) -> Tensor:
        """The state slots of those request rows, as a new tensor."""
        return self.state_index[req_pool_indices]


class Pools:
    """The pools of one model runner."""

    def __init__(
        self,
        *,
        max_requests: int,
        max_context: int,
        kv: Mapping[int, Shapes],
        states: Mapping[int, Shapes],
        device: torch.device,
    ) -> None:
        self.requests = ReqToTokenPool(max_requests, max_context, device)
        self.kv = SlotPool(kv, max_requests * max_context, device)
        self.states = SlotPool(states, max_requests, device)

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that a forward pass may write."""
        yield from self.kv.named()
        yield from self.states.named()

    def snapshot(self) -> list[Tensor]:
        """A copy of every tensor that a forward pass may write."""
        return [tensor.clone() for _, tensor in self.named()]

    def restore(self, snapshot: list[Tensor]) -> None:
        """Write a snapshot back, in place: captured graphs hold these addresses."""
        for (_, tensor), saved in zip(self.named(), snapshot, strict=True):
            tensor.copy_(saved)

    def scramble(self, generator: torch.Generator) -> None:
        """Fill everything with random values, as earlier tenants of the slots would leave them; ``generator`` is of the
        pools' device."""
        for _, tensor in self.named():
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float32, device=tensor.device)
            tensor.copy_((noise * 0.5).to(tensor.dtype))
