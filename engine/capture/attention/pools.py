"""Where state lives: requests to tokens, tokens to keys and values, requests to recurrent state.

The first page of the key-value cache and the first slot of recurrent state are reserved: padding reads and writes them,
and nothing live is ever there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.guard import Guard

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""What one layer keeps for each token, or for each request: name -> (shape, dtype)."""

STATES_A_REQUEST = 2
"""The state that a request runs on, and the one that its last boundary is kept in."""


class SlotPool:
    """For each layer, named tensors with one row a slot; the first ``reserved`` rows are padding's."""

    def __init__(self, layers: Mapping[int, Shapes], slots: int, device: torch.device, reserved: int = 1) -> None:
        self.slots = slots
        self.reserved = reserved
        self._tensors = {
            layer: {
                name: torch.zeros((reserved + slots, *shape), dtype=dtype, device=device)
                for name, (shape, dtype) in shapes.items()
            }
            for layer, shapes in layers.items()
        }

    def layer(self, index: int) -> Mapping[str, Tensor]:
        """The tensors of one layer, by name; each ``[reserved + slots, ...]``."""
        return self._tensors[index]

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor with a name for messages."""
        for layer, tensors in self._tensors.items():
            for name, tensor in tensors.items():
                yield f"layer {layer} {name}", tensor


class ReqToTokenPool:
    """``table[request row, position]`` is the key-value slot of that token; ``state_index[request row]`` the slot of
    the request's recurrent state, ``track_index[request row]`` the slot that keeps it at the last boundary."""

    def __init__(self, max_requests: int, max_context: int, device: torch.device, page_size: int = 1) -> None:
        self.max_requests = max_requests
        self.max_context = max_context
        self.page_size = page_size
        self.table = torch.zeros((max_requests + 1, max_context), dtype=torch.int64, device=device)
        self.state_index = torch.zeros((max_requests + 1,), dtype=torch.int64, device=device)
        self.track_index = torch.zeros((max_requests + 1,), dtype=torch.int64, device=device)

    @property
    def pages_a_request(self) -> int:
        """Pages that a request of ``max_context`` tokens has."""
        return self.max_context // self.page_size

    def state_indices(self, req_pool_indices: Tensor) -> Tensor:
        """The state slots of those request rows, as a new tensor."""
        return self.state_index[req_pool_indices]

    def pages(self, req_pool_indices: Tensor) -> Tensor:
        """The pages of those request rows, ``[R, pages a request]``, as a new tensor."""
        return self.table[req_pool_indices, :: self.page_size] // self.page_size

    def check(self, guard: Guard, batch: ForwardBatch) -> None:
        """What a replay of ``batch`` looks its state slots up in.

        Raises:
            GraphStateError: one of the tables does not hold every request row, or is not what the look-up reads.
        """
        for name in ("state_index", "track_index"):
            guard.rows(
                getattr(self, name),
                table=name,
                batch_size=batch.batch_size,
                mode=batch.mode,
                dtype=torch.int64,
                needed=self.max_requests + 1,
            )


class Pools:
    """The pools of one model runner. ``max_context`` is in tokens, a whole number of pages of ``page_size`` tokens."""

    def __init__(
        self,
        *,
        max_requests: int,
        max_context: int,
        kv: Mapping[int, Shapes],
        states: Mapping[int, Shapes],
        device: torch.device,
        page_size: int = 1,
    ) -> None:
        if max_context % page_size:
            raise ValueError(f"A context of {max_context} tokens is no whole number of pages of {page_size}.")
        self.requests = ReqToTokenPool(max_requests, max_context, device, page_size)
        self.kv = SlotPool(kv, max_requests * max_context, device, reserved=page_size)
        self.states = SlotPool(states, max_requests * STATES_A_REQUEST, device)

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
