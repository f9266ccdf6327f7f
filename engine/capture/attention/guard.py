"""The guard: a static table that replay cannot use as it is becomes an explicit error, never an IndexError.

Five faults: nobody allocated it, it is too small, it lies on another device, its values have another type, or it has
another form than the graph was captured with. Each of them has crashed an engine in capture, or sent a replay through
whatever memory happened to lie there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.capture.attention.batch import ForwardMode
from engine.capture.options import Allocation

TableFault = Literal["uninitialised", "too small", "wrong device", "wrong dtype", "wrong shape"]


class GraphStateError(RuntimeError):
    """A graph was captured or replayed against a static table that is not fit for it.

    ``capacity``: request rows (for a page table too narrow: pages a row) that the table holds; ``found``: its dtype and
    device, or that there is none.
    """

    def __init__(
        self, message: str, *, table: str, batch_size: int, capacity: int, family: str, fault: TableFault, found: str
    ) -> None:
        super().__init__(message)
        self.table = table
        self.batch_size = batch_size
        self.capacity = capacity
        self.family = family
        self.fault = fault
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Hands out the static tables of one attention backend. ``backend`` is its name in messages."""

    backend: str
    family: str
    allocation: Allocation
    device: torch.device

    def of_size(
        self,
        tables: Sequence[Tensor],
        *,
        table: str,
        batch_size: int,
        mode: ForwardMode,
        dtype: torch.dtype,
        more: int = 0,
    ) -> Tensor:
        """The buffer for ``batch_size`` request rows out of ``tables``, which holds one for each size from 1 on; it has
        ``batch_size + more`` values.

        Raises:
            GraphStateError: naming table, batch size, capacity, family, what was found, and the way out.
        """
        look = _Look(self, table, batch_size, mode, len(tables), "sizes")
        if not tables:
            raise look.uninitialised()
        if not 1 <= batch_size <= len(tables):
            raise look.too_small()
        return look.checked(tables[batch_size - 1], dtype, (batch_size + more,))

    def rows(
        self,
        buffer: Tensor | None,
        *,
        table: str,
        batch_size: int,
        mode: ForwardMode,
        dtype: torch.dtype,
        needed: int | None = None,
        columns: int | None = None,
    ) -> Tensor:
        """The first ``batch_size`` rows of one buffer that serves every size; each of ``columns`` values where given.

        ``needed``: how many rows there must be, where that is more, because the rows are looked up by number.

        Raises:
            GraphStateError: as for :meth:`of_size`.
        """
        if buffer is None:
            raise _Look(self, table, batch_size, mode, 0, "rows").uninitialised()
        look = _Look(self, table, batch_size, mode, len(buffer) if buffer.dim() else 0, "rows")
        wanted = (None,) if columns is None else (None, columns)
        if buffer.dim() != len(wanted):
            raise look.wrong_shape(buffer, wanted)
        if not 1 <= (needed or batch_size) <= len(buffer):
            raise look.too_small()
        if columns is not None and buffer.shape[1] < columns:
            raise _Look(self, table, batch_size, mode, buffer.shape[1], "pages a row").too_narrow(columns)
        return look.checked(buffer, dtype, wanted)[:batch_size]


@dataclass(frozen=True, slots=True)
class _Look:
    """One look-up, and what can be wrong with it."""

    guard: Guard
    table: str
    batch_size: int
    mode: ForwardMode
    capacity: int
    unit: str

    def checked(self, buffer: Tensor, dtype: torch.dtype, shape: tuple[int | None, ...]) -> Tensor:
        if not same_device(buffer.device, self.guard.device):
            raise self._error(
                "wrong device",
                f"lies on {buffer.device}, and the backend runs on {self.guard.device}",
                f"Allocate it on {self.guard.device}, as init_cuda_graph_state() does; a graph cannot read memory of "
                "another device.",
                found=_found(buffer),
            )
        if buffer.dtype != dtype:
            raise self._error(
                "wrong dtype",
                f"holds {_name(buffer.dtype)}, and the captured kernels read {_name(dtype)}",
                f"Allocate it as {_name(dtype)}, as init_cuda_graph_state() does; a graph would read its bytes as "
                "other numbers.",
                found=_found(buffer),
            )
        if any(wanted not in (None, there) for wanted, there in zip(shape, buffer.shape, strict=False)) or (
            buffer.dim() != len(shape)
        ):
            raise self.wrong_shape(buffer, shape)
        return buffer

    def uninitialised(self) -> GraphStateError:
        if self.mode == "extend" and self.guard.allocation == "decode-owned":
            remedy = (
                "Only the decode runner calls init_cuda_graph_state(), and the prefill "
                "runner captures before the decode runner exists. Write '--cuda-graph-backend-prefill breakable' or "
                "'disabled' (prefill.backend in --cuda-graph-config) instead of full, or allocate the tables for each "
                "phase before it captures."
            )
        else:
            remedy = f"Call init_cuda_graph_state() for {self._phase} before its runner captures."
        return self._error("uninitialised", "is not initialised", remedy, found="no table")

    def too_small(self) -> GraphStateError:
        remedy = (
            "Lower the number of request rows a graph captures "
            f"(full_prefill_max_req, or the largest decode size) to {self.capacity}, or raise max_bs of "
            "init_cuda_graph_state()."
        )
        return self._error("too small", "is too small", remedy, found=f"{self.capacity} {self.unit}")

    def too_narrow(self, columns: int) -> GraphStateError:
        remedy = (
            f"Allocate {columns} columns, the context length in pages: a request would read another's pages, or none."
        )
        return self._error("too small", "is too small", remedy, found=f"{self.capacity} {self.unit}")

    def wrong_shape(self, buffer: Tensor, shape: tuple[int | None, ...]) -> GraphStateError:
        wanted = ", ".join("rows" if size is None else str(size) for size in shape)
        return self._error(
            "wrong shape",
            f"has shape {list(buffer.shape)}, and the graph was captured over [{wanted}]",
            "Allocate it with init_cuda_graph_state(), and refresh it in place instead of replacing it.",
            found=f"{_found(buffer)}, shape {list(buffer.shape)}",
        )

    @property
    def _phase(self) -> str:
        return "decode" if self.mode == "decode" else "prefill"

    def _error(self, fault: TableFault, what: str, remedy: str, *, found: str) -> GraphStateError:
        return GraphStateError(
            f"CUDA graph metadata of the {self.guard.backend} backend: {self.table} was asked for batch size "
            f"{self.batch_size} in {self._phase} and holds {self.capacity} {self.unit}: it {what}. {remedy}",
            table=self.table,
            batch_size=self.batch_size,
            capacity=self.capacity,
            family=self.guard.family,
            fault=fault,
            found=found,
        )


def same_device(one: torch.device, other: torch.device) -> bool:
    """Whether both name one device; ``cuda`` without an index stands for any of them."""
    return one.type == other.type and (None in (one.index, other.index) or one.index == other.index)


def _found(buffer: Tensor) -> str:
    return f"{_name(buffer.dtype)} on {buffer.device}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
