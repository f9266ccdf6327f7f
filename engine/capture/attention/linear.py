"""The backend of recurrent layers, with the guard.

Structure after SGLang 0.5.23, layers/attention/hybrid_linear_attn_backend.py, MambaAttnBackendBase: static tables
filled by ``init_cuda_graph_state``, refreshed in place by ``_replay_metadata``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import PAD_SLOT_ID, ForwardBatch, ForwardMode
from engine.capture.attention.guard import Guard
from engine.capture.attention.pools import Pools
from engine.capture.attention.ragged import LinearMetadata, RaggedAccess
from engine.capture.attention.tables import GraphTables
from engine.capture.models.mixer import Mixer, RecurrentMixer
from engine.capture.options import Allocation


class LinearAttentionBackend(AttentionBackend):
    """Recurrent layers of one family or of several.

    Under ``decode-owned`` allocation there is one set of tables, which the decode runner allocates, as in the engine;
    under ``per-phase`` each phase has its own.
    """

    def __init__(self, pools: Pools, family: str, allocation: Allocation, device: torch.device) -> None:
        self.family = family
        self.allocation: Allocation = allocation
        self._pools = pools
        self._device = device
        self._guard = Guard(backend=f"{family} linear-attention", family=family, allocation=allocation, device=device)
        shared = GraphTables()
        self.tables: dict[ForwardMode, GraphTables] = {
            "decode": shared,
            "extend": shared if allocation == "decode-owned" else GraphTables(),
        }
        self._metadata: LinearMetadata | None = None

    @property
    def state_indices_list(self) -> list[Tensor]:
        """The decode runner's table, by the engine's name."""
        return self.tables["decode"].state_indices_list

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:
        if max_bs < 1 or max_num_tokens < max_bs:
            raise ValueError(f"Graph tables need 1 <= max_bs <= max_num_tokens, not {max_bs} and {max_num_tokens}.")
        self.tables[mode].allocate(max_bs, self._device)

    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        self._metadata = LinearMetadata(
            query_start_loc=batch.query_start_loc,
            state_indices=self._state_indices(batch),
            has_initial=self._has_initial(batch),
            num_tokens=batch.num_tokens,
            max_len=batch.max_len,
            tracking=batch.tracking,
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
            GraphStateError: a buffer is missing, too small, or not what the graph reads.
        """
        self._pools.requests.check(self._guard, batch)
        tables = self.tables[batch.mode].for_batch(self._guard, batch)
        tables.refresh(batch, self._state_indices(batch), self._has_initial(batch))
        return LinearMetadata(
            query_start_loc=tables.query_start_loc,
            state_indices=tables.state_indices,
            has_initial=tables.has_initial,
            num_tokens=batch.num_tokens,
            max_len=batch.max_len,
            tracking=tables.tracking,
        )

    def _state_indices(self, batch: ForwardBatch) -> Tensor:
        indices = self._pools.requests.state_indices(batch.req_pool_indices)
        if batch.num_padding:
            indices[batch.batch_size - batch.num_padding :] = PAD_SLOT_ID
        return indices

    @staticmethod
    def _has_initial(batch: ForwardBatch) -> Tensor:
        return batch.prefix_lens > 0
