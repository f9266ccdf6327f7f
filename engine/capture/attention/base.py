"""The contract of an attention backend: five methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from engine.capture.attention.batch import ForwardBatch, ForwardMode

if TYPE_CHECKING:
    from engine.capture.models.mixer import Mixer


class AttentionBackend(ABC):
    """Metadata before a forward pass, and the stateful part of each mixing layer during it.

    ``forward`` reads only what the last call of ``init_forward_metadata``, ``prepare_capture`` or ``prepare_replay``
    left, never the batch: what a captured graph reads is thereby exactly what a replay can refresh.
    """

    @abstractmethod
    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int, mode: ForwardMode) -> None:
        """Allocate the static tables for graphs of up to ``max_bs`` request rows and ``max_num_tokens`` token rows.

        ``mode`` says whose tables: under decode-owned allocation only the decode runner calls this.
        """

    @abstractmethod
    def init_forward_metadata(self, batch: ForwardBatch) -> None:
        """Prepare an eager forward pass of ``batch``."""

    @abstractmethod
    def prepare_capture(self, batch: ForwardBatch) -> None:
        """Prepare capture of a graph over ``batch``, whose tensors are the runner's static buffers."""

    @abstractmethod
    def prepare_replay(self, batch: ForwardBatch) -> None:
        """Refresh, in place, what the captured graph of ``batch``'s shape reads."""

    @abstractmethod
    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        """The stateful part of one layer: reads and writes the pools; ``[T, ...]`` rows in and out."""
