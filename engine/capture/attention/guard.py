"""The guard: a static table that is missing or too small is an explicit error, never an IndexError."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


class GraphStateError(RuntimeError):
    """A graph was captured or replayed against static tables that nobody allocated, or not large enough."""

    def __init__(self, message: str, *, table: str, batch_size: int, capacity: int, family: str) -> None:
        super().__init__(message)
        self.table = table
        self.batch_size = batch_size
        self.capacity = capacity
        self.family = family


def guarded_lookup(
    tables: Sequence[Tensor], *, table: str, batch_size: int, family: str, phase: str, allocation: str
) -> Tensor:
    """The static buffer for ``batch_size`` request rows out of ``tables``, which holds one for each size from 1 on.

    Raises:
        GraphStateError: naming table, batch size, capacity, family and the way out, where there is no such buffer.
    """
    capacity = len(tables)
    if 1 <= batch_size <= capacity:
        return tables[batch_size - 1]
    asked = (
        f"CUDA graph metadata of the {family} linear-attention backend: {table} was asked for batch size "
        f"{batch_size} in {phase} and holds {capacity} sizes"
    )
    if capacity == 0 and allocation == "decode-owned":
        message = (
            f"{asked}: it is not initialised. Only the decode runner calls init_cuda_graph_state(), and the prefill "
            "runner captures before the decode runner exists. Write '--cuda-graph-backend-prefill breakable' or "
            "'disabled' (prefill.backend in --cuda-graph-config) instead of full, or allocate the tables for each "
            "phase before it captures."
        )
    elif capacity == 0:
        message = (
            f"{asked}: it is not initialised. Call init_cuda_graph_state() for {phase} before its runner captures."
        )
    else:
        message = (
            f"{asked}: it is too small. Lower the number of request rows a graph captures "
            f"(full_prefill_max_req, or the largest decode size) to {capacity}, or raise max_bs of "
            "init_cuda_graph_state()."
        )
    raise GraphStateError(message, table=table, batch_size=batch_size, capacity=capacity, family=family)
