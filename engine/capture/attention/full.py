"""Full attention over a paged key-value pool, with the guard on its page tables."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.attention.guard import Guard
from engine.capture.attention.paged import PagedAccess, PagedMetadata
from engine.capture.attention.pools import Pools
from engine.capture.models.mixer import Mixer, PagedMixer
from engine.capture.options import Allocation

PAGE = torch.int32
"""As the engine's kernels read page tables."""


class FullAttentionBackend(AttentionBackend):
    """One static page table a phase.

    The decode runner allocates decode's; prefill's comes into being when its first, largest, graph is captured, which
    is why models without linear attention capture full prefill (SGLang 0.5.23,
    layers/attention/flashattention_backend.py, ``_init_full_cg_prefill_metadata``).
    """

    def __init__(self, pools: Pools, allocation: Allocation = "decode-owned") -> None:
        self._pools = pools
        self._device = pools.requests.table.device
        self._guard = Guard(
            backend="full-attention", family="full attention", allocation=allocation, device=self._device
        )
        self.page_tables: dict[ForwardMode, Tensor | None] = {"decode": None, "extend": None}
        self._metadata: PagedMetadata | None = None

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:  # noqa: ARG002 - the contract of a backend
        pages = self._pools.requests.pages_a_request
        self.page_tables[mode] = torch.zeros((max_bs, pages), dtype=PAGE, device=self._device)

    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        requests = self._pools.requests
        self._metadata = PagedMetadata(
            batch=batch, page_table=requests.pages(batch.req_pool_indices), page_size=requests.page_size
        )

    def prepare_capture(self, batch: ForwardBatch) -> None:
        if batch.mode == "extend" and self.page_tables["extend"] is None:
            self.init_cuda_graph_state(batch.batch_size, batch.num_tokens, "extend")
        self._metadata = self._replay_metadata(batch)

    def prepare_replay(self, batch: ForwardBatch) -> None:
        self._metadata = self._replay_metadata(batch)

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(mixer, PagedMixer):
            raise TypeError(f"{type(mixer).__name__} keeps no keys and values: full attention cannot serve it.")
        if self._metadata is None:
            raise RuntimeError("Full attention has no metadata: call init_forward_metadata() before a forward pass.")
        return mixer.mix(inputs, PagedAccess(self._metadata, self._pools.kv.layer(mixer.layer)))

    def _replay_metadata(self, batch: ForwardBatch) -> PagedMetadata:
        """Write the pages of this batch's requests into the static table, in place; padding has the reserved page.

        Raises:
            GraphStateError: a table is missing, too small, or not what the graph reads.
        """
        requests = self._pools.requests
        guard, size, mode, pages = self._guard, batch.batch_size, batch.mode, requests.pages_a_request
        guard.rows(
            requests.table,
            table="req_to_token",
            batch_size=size,
            mode=mode,
            dtype=torch.int64,
            needed=requests.max_requests + 1,
            columns=requests.max_context,
        )
        table = guard.rows(
            self.page_tables[mode], table="page_table", batch_size=size, mode=mode, dtype=PAGE, columns=pages
        )
        table.copy_(requests.pages(batch.req_pool_indices))
        return PagedMetadata(batch=batch, page_table=table, page_size=requests.page_size)
