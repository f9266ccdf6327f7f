"""The static tables of the recurrent layers: for each number of request rows, what its captured graphs read."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.capture.attention.batch import PAD_SLOT_ID, ForwardBatch, Tracking
from engine.capture.attention.guard import Guard

INDEX = torch.int32
"""As the engine's kernels read state indices and query starts."""

TRACK_INDEX = torch.int64
"""As the engine's track-save kernel reads its destinations."""


class GraphTables:
    """Names, types and forms after SGLang 0.5.23, layers/attention/hybrid_linear_attn_backend.py: one buffer a batch
    size for what changes form with it, one buffer for all sizes for the track destinations."""

    def __init__(self) -> None:
        self.state_indices_list: list[Tensor] = []
        self.query_start_loc_list: list[Tensor] = []
        self.has_initial_list: list[Tensor] = []
        self.mamba_track_indices_buf: Tensor | None = None
        self.mamba_track_mask_buf: Tensor | None = None
        self.mamba_track_ends_buf: Tensor | None = None

    def allocate(self, max_bs: int, device: torch.device) -> None:
        """Buffers for 1 to ``max_bs`` request rows, replacing what was there."""
        self.__init__()  # type: ignore[misc]  # start over: appending to a filled table would shift every size
        for bs in range(1, max_bs + 1):
            self.state_indices_list.append(torch.full((bs,), PAD_SLOT_ID, dtype=INDEX, device=device))
            self.query_start_loc_list.append(torch.zeros((bs + 1,), dtype=INDEX, device=device))
            self.has_initial_list.append(torch.zeros((bs,), dtype=torch.bool, device=device))
        self.mamba_track_indices_buf = torch.zeros((max_bs,), dtype=TRACK_INDEX, device=device)
        self.mamba_track_mask_buf = torch.zeros((max_bs,), dtype=torch.bool, device=device)
        self.mamba_track_ends_buf = torch.zeros((max_bs,), dtype=INDEX, device=device)

    def for_batch(self, guard: Guard, batch: ForwardBatch) -> BatchTables:
        """The buffers for ``batch``'s number of request rows, all of them looked up before any is written.

        Raises:
            GraphStateError: one of them is missing, too small, or not what the graph reads.
        """
        size, mode = batch.batch_size, batch.mode

        def listed(name: str, dtype: torch.dtype, more: int = 0) -> Tensor:
            return guard.of_size(getattr(self, name), table=name, batch_size=size, mode=mode, dtype=dtype, more=more)

        def rows(name: str, dtype: torch.dtype) -> Tensor:
            return guard.rows(getattr(self, name), table=name, batch_size=size, mode=mode, dtype=dtype)

        return BatchTables(
            state_indices=listed("state_indices_list", INDEX),
            query_start_loc=listed("query_start_loc_list", INDEX, more=1),
            has_initial=listed("has_initial_list", torch.bool),
            tracking=Tracking(
                mask=rows("mamba_track_mask_buf", torch.bool),
                ends=rows("mamba_track_ends_buf", INDEX),
                indices=rows("mamba_track_indices_buf", TRACK_INDEX),
            ),
        )


class BatchTables:
    """The buffers of one number of request rows."""

    def __init__(
        self, *, state_indices: Tensor, query_start_loc: Tensor, has_initial: Tensor, tracking: Tracking
    ) -> None:
        self.state_indices = state_indices
        self.query_start_loc = query_start_loc
        self.has_initial = has_initial
        self.tracking = tracking

    def refresh(self, batch: ForwardBatch, state_indices: Tensor, has_initial: Tensor) -> None:
        """Write ``batch`` into the buffers, in place: captured graphs hold their addresses."""
        self.state_indices.copy_(state_indices)
        self.query_start_loc.copy_(batch.query_start_loc)
        self.has_initial.copy_(has_initial)
        if batch.tracking is None:
            self.tracking.mask.zero_()
            return
        self.tracking.mask.copy_(batch.tracking.mask)
        self.tracking.ends.copy_(batch.tracking.ends)
        self.tracking.indices.copy_(batch.tracking.indices)
