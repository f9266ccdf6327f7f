"""Full attention over a slot-addressed key-value pool. Its graph metadata are the runner's own static buffers."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.attention.paged import PagedAccess
from engine.capture.attention.pools import Pools
from engine.capture.models.mixer import Mixer, PagedMixer


class FullAttentionBackend(AttentionBackend):
    """Needs no tables beside the batch, which is why models without linear attention capture full prefill."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._batch: ForwardBatch | None = None

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:
        """Nothing to allocate: the runner's buffers carry everything."""

    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        self._batch = batch

    def prepare_capture(self, batch: ForwardBatch) -> None:
        self._batch = batch

    def prepare_replay(self, batch: ForwardBatch) -> None:
        self._batch = batch

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        if not isinstance(mixer, PagedMixer):
            raise TypeError(f"{type(mixer).__name__} keeps no keys and values: full attention cannot serve it.")
        if self._batch is None:
            raise RuntimeError("Full attention has no metadata: call init_forward_metadata() before a forward pass.")
        access = PagedAccess(self._batch, self._pools.requests.table, self._pools.kv.layer(mixer.layer))
        return mixer.mix(inputs, access)
