"""The backend of recurrent layers, with the guard.

Structure after SGLang 0.5.23, layers/attention/hybrid_linear_attn_backend.py, MambaAttnBackendBase: one static table a
batch size, filled by ``init_cuda_graph_state``, refreshed in place by ``_replay_metadata``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import PAD_SLOT_ID, ForwardBatch, ForwardMode
from engine.capture.attention.guard import guarded_lookup
from engine.capture.attention.pools import Pools
from engine.capture.attention.ragged import LinearMetadata, RaggedAccess
from engine.capture.models.mixer import Mixer, RecurrentMixer
from engine.capture.options import Allocation


class GraphTables:
    """For each number of request rows, the static buffers that its captured graphs read."""

    def __init__(self) -> None:
        self.state_indices_list: list[Tensor] = []
        self.query_start_loc_list: list[Tensor] = []
        self.has_initial_list: list[Tensor] = []

    def allocate(self, max_bs: int, device: torch.device) -> None:
        """Buffers for 1 to ``max_bs`` request rows, replacing what was there."""
        self.__init__()  # type: ignore[misc]  # start over: appending to a filled table would shift every size
        for bs in range(1, max_bs + 1):
            self.state_indices_list.append(torch.full((bs,), PAD_SLOT_ID, dtype=torch.int32, device=device))
            self.query_start_loc_list.append(torch.zeros((bs + 1,), dtype=torch.int32, device=device))
            self.has_initial_list.append(torch.zeros((bs,), dtype=torch.bool, device=device))


class LinearAttentionBackend(AttentionBackend):
    """Recurrent layers of one family or of several.

    Under ``decode-owned`` allocation there is one table, which the decode runner allocates, as in the engine; under
    ``per-phase`` each phase has its own.
    """

    def __init__(self, pools: Pools, family: str, allocation: Allocation, device: torch.device) -> None:
        self.family = family
        self.allocation: Allocation = allocation
        self._pools = pools
        self._device = device
        shared = GraphTables()
        self._tables: dict[ForwardMode, GraphTables] = {
            "decode": shared,
            "extend": shared if allocation == "decode-owned" else GraphTables(),
        }
        self._metadata: LinearMetadata | None = None

    @property
    def state_indices_list(self) -> list[Tensor]:
        """The decode runner's table, by the engine's name."""
        return self._tables["decode"].state_indices_list

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:
        if max_bs < 1 or max_num_tokens < max_bs:
            raise ValueError(f"Graph tables need 1 <= max_bs <= max_num_tokens, not {max_bs} and {max_num_tokens}.")
        self._tables[mode].allocate(max_bs, self._device)

    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        self._metadata = LinearMetadata(
            query_start_loc=batch.query_start_loc,
            state_indices=self._state_indices(batch),
            has_initial=self._has_initial(batch),
            num_tokens=batch.num_tokens,
            max_len=batch.max_len,
        )

    def prepare_capture(self, batch: ForwardBatch) -> None:
        self._metadata = self._replay_metadata(batch)

    def prepare_replay(self, batch: ForwardBatch) -> None:
        self._metadata = self._replay_metadata(batch)

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(mixer, RecurrentMixer):
            raise TypeError(f"{type(mixer).__name__} keeps no recurrent state: linear attention cannot serve it.")
        if self._metadata is None:
            raise RuntimeError("Linear attention has no metadata: call init_forward_metadata() before a forward pass.")
        return mixer.mix(inputs, RaggedAccess(self._metadata, self._pools.states.layer(mixer.layer)))

    def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
        """Write this batch into the static buffers of its number of request rows, and hand those out.

        Raises:
            GraphStateError: the buffers were not allocated, or not for so many rows.
        """
        state_indices = self._buffer("state_indices_list", batch)
        query_start_loc = self._buffer("query_start_loc_list", batch)
        has_initial = self._buffer("has_initial_list", batch)
        state_indices.copy_(self._state_indices(batch))
        query_start_loc.copy_(batch.query_start_loc)
        has_initial.copy_(self._has_initial(batch))
        return LinearMetadata(
            query_start_loc=query_start_loc,
            state_indices=state_indices,
            has_initial=has_initial,
            num_tokens=batch.num_tokens,
            max_len=batch.max_len,
        )

    def _buffer(self, name: str, batch: ForwardBatch) -> Tensor:
        return guarded_lookup(
            getattr(self._tables[batch.mode], name),
            table=name,
            batch_size=batch.batch_size,
            family=self.family,
            phase="decode" if batch.mode == "decode" else "prefill",
            allocation=self.allocation,
        )

    def _state_indices(self, batch: ForwardBatch) -> Tensor:
        indices = self._pools.requests.state_indices(batch.req_pool_indices)
        if batch.num_padding:
            indices[batch.batch_size - batch.num_padding :] = PAD_SLOT_ID
        return indices

    @staticmethod
    def _has_initial(batch: ForwardBatch) -> Tensor:
        return batch.prefix_lens > 0
