"""Both backends of a hybrid model behind one: full attention layers to one, recurrent layers to the other."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.capture.attention.base import AttentionBackend
from engine.capture.attention.batch import ForwardBatch, ForwardMode
from engine.capture.models.mixer import Mixer, PagedMixer


class HybridLinearAttnBackend(AttentionBackend):
    """Dispatches by layer; every other call goes to both, full attention first, as in the engine."""

    def __init__(self, full: AttentionBackend, linear: AttentionBackend) -> None:
        self.full_attn_backend = full
        self.linear_attn_backend = linear
        self._both = (full, linear)

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:
        for backend in self._both:
            backend.init_cuda_graph_state(max_bs, max_num_tokens, mode)

    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        for backend in self._both:
            backend.init_forward_metadata(batch)

    def prepare_capture(self, batch: ForwardBatch) -> None:
        for backend in self._both:
            backend.prepare_capture(batch)

    def prepare_replay(self, batch: ForwardBatch) -> None:
        for backend in self._both:
            backend.prepare_replay(batch)

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        paged = isinstance(mixer, PagedMixer)
        return (self.full_attn_backend if paged else self.linear_attn_backend).forward(mixer, inputs)
