"""Faults as serving engines have shipped them, each planted into one part of a capture.

A fault is a set of parts for :class:`engine.capture.setup.CaptureSetup`, which layers it needs, and what each phase
must come out as: a mismatch wherever the fault can show, a refusal where capture or guard can see it beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from engine.capture.attention.batch import ForwardBatch
from engine.capture.attention.full import FullAttentionBackend
from engine.capture.attention.linear import LinearAttentionBackend
from engine.capture.attention.paged import PagedAccess, PagedMetadata
from engine.capture.attention.ragged import LinearMetadata
from engine.capture.models.mixer import Mixer, PagedMixer
from engine.capture.runners.decode import DecodeCudaGraphRunner
from engine.capture.runners.prefill import PrefillCudaGraphRunner
from engine.capture.setup import Parts

Layers = Literal["attention", "recurrent"]
MISMATCH = ("mismatch", "mismatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``needs``: the layers without which it cannot show; None: it shows in every model. ``outcome``: of prefill and of
    decode."""

    kind: str
    name: str
    parts: Parts
    needs: Layers | None = None
    outcome: tuple[str, str] = MISMATCH

    def __str__(self) -> str:
        return f"{self.kind}, {self.name}".replace(" ", "-")


def recording() -> bool:
    """Whether the operators that run now are being recorded, on a CPU or into a CUDA graph."""
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return True
    return _get_current_dispatch_mode() is not None


# A stale pointer: what the graph reads is not what is refreshed.


class ReplacedPages(FullAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        held = self.page_tables[batch.mode]
        assert held is not None
        self.page_tables[batch.mode] = held.clone()
        super().prepare_replay(batch)


class ReplacedIndices(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        table = self.tables[batch.mode].state_indices_list
        table[batch.batch_size - 1] = table[batch.batch_size - 1].clone()
        super().prepare_replay(batch)


class ReplacedTrackSlots(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        tables = self.tables[batch.mode]
        assert tables.mamba_track_indices_buf is not None
        tables.mamba_track_indices_buf = tables.mamba_track_indices_buf.clone()
        super().prepare_replay(batch)


class ReplacedInputsPrefill(PrefillCudaGraphRunner):
    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        self.inputs.input_ids = self.inputs.input_ids.clone()
        return super().load_batch(batch, size)


class ReplacedInputsDecode(DecodeCudaGraphRunner):
    def load_batch(self, batch: ForwardBatch, size: int) -> ForwardBatch:
        self.inputs.input_ids = self.inputs.input_ids.clone()
        return super().load_batch(batch, size)


# Metadata that replay does not refresh.


class StalePages(FullAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        """Forgets to write the batch's pages."""


class StaleState(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        """Forgets to write the batch into the static tables."""


class StaleStarts(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        starts = self.tables[batch.mode].query_start_loc_list[batch.batch_size - 1]
        before = starts.clone()
        super().prepare_replay(batch)
        starts.copy_(before)


class StaleTrackMask(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        super().prepare_replay(replace(batch, tracking=None))


# A number that Python knew at capture.


class PagesAtCapture(FullAttentionBackend):
    """Bakes in how many pages the longest context had when the graph was made."""

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        held = self._metadata
        assert held is not None
        if recording():
            self._metadata = PagedMetadata(
                batch=held.batch, page_table=held.page_table[:, :1], page_size=held.page_size
            )
        try:
            return super().forward(mixer, inputs)
        finally:
            self._metadata = held


class TokensAtCapture(LinearAttentionBackend):
    """Bakes in how many tokens the batch had when the graph was made: none, it was padding."""

    live_tokens = 0

    def prepare_capture(self, batch: ForwardBatch) -> None:
        super().prepare_capture(batch)
        self.live_tokens = int(batch.query_start_loc[-1])

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        mixed = super().forward(mixer, inputs)
        if recording():
            mixed[self.live_tokens :] = 0
        return mixed


class ReadBackPrefill(PrefillCudaGraphRunner):
    def forward(self, batch: ForwardBatch) -> Tensor:
        return super().forward(batch)[: int(batch.query_start_loc[-1]) or None]


class ReadBackDecode(DecodeCudaGraphRunner):
    def forward(self, batch: ForwardBatch) -> Tensor:
        return super().forward(batch)[: int(batch.query_start_loc[-1]) or None]


# A padding row that writes a live slot.


class UnmaskedWrites(PagedAccess):
    def write(self, name: str, rows: Tensor) -> None:
        slots = torch.where(self._live, self._out_cache_loc, self._cache[name].shape[0] - 1)
        self._cache[name].index_copy_(0, slots, rows.to(self._cache[name].dtype))


class LivePaddingPages(FullAttentionBackend):
    """Padding tokens write the last slot of the cache."""

    def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
        assert self._metadata is not None
        assert isinstance(mixer, PagedMixer)
        return mixer.mix(inputs, UnmaskedWrites(self._metadata, self._pools.kv.layer(mixer.layer)))


class LivePaddingState(LinearAttentionBackend):
    """Padding requests have the first live slot of the state."""

    def _state_indices(self, batch: ForwardBatch) -> Tensor:
        indices = self._pools.requests.state_indices(batch.req_pool_indices)
        if batch.num_padding:
            indices[batch.batch_size - batch.num_padding :] = 1
        return indices


class LivePaddingTrack(LinearAttentionBackend):
    """Requests that reach no boundary, padding among them, write the first live slot of the state."""

    def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
        metadata = super()._replay_metadata(batch)
        assert metadata.tracking is not None
        metadata.tracking.indices.masked_fill_(~metadata.tracking.mask, 1)
        metadata.tracking.mask.fill_(True)
        return metadata


# An output buffer that is shared too early: the next replay writes over what was not taken yet.


class SharedOutputPrefill(PrefillCudaGraphRunner):
    def taken(self, rows: int) -> Tensor:
        assert self.output is not None
        return self.output[:rows]


class SharedOutputDecode(DecodeCudaGraphRunner):
    def taken(self, rows: int) -> Tensor:
        assert self.output is not None
        return self.output[:rows]


# A state that nobody resets.


class NoReset(LinearAttentionBackend):
    """Fresh requests inherit what the slot's last tenant left."""

    def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
        metadata = super()._replay_metadata(batch)
        metadata.has_initial.fill_(True)
        return metadata


class NeverContinued(LinearAttentionBackend):
    """Every request starts from nothing, the continued ones too."""

    def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
        metadata = super()._replay_metadata(batch)
        metadata.has_initial.fill_(False)
        return metadata


# A table that is no longer what the graph was captured with: the guard refuses before anything is read.


class WidenedIndices(LinearAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        table = self.tables[batch.mode].state_indices_list
        table[batch.batch_size - 1] = table[batch.batch_size - 1].long()
        super().prepare_replay(batch)


class WidenedPages(FullAttentionBackend):
    def prepare_replay(self, batch: ForwardBatch) -> None:
        held = self.page_tables[batch.mode]
        assert held is not None
        self.page_tables[batch.mode] = held.long()
        super().prepare_replay(batch)


STALE, UNREFRESHED, CONSTANT = "stale pointer", "metadata not refreshed", "capture-time constant"
PADDING, SHARED, RESET = "padding writes a live slot", "output shared too early", "missing state reset"
REFUSED = ("capture_failed", "capture_failed")
GUARDED = ("guard_refused", "guard_refused")
ONLY_PREFILL = ("mismatch", "ok")

FAULTS = (
    Fault(kind=STALE, name="page table", parts=Parts(full_backend=ReplacedPages), needs="attention"),
    Fault(kind=STALE, name="state indices", parts=Parts(linear_backend=ReplacedIndices), needs="recurrent"),
    Fault(kind=STALE, name="track slots", parts=Parts(linear_backend=ReplacedTrackSlots), needs="recurrent"),
    Fault(
        kind=STALE,
        name="input ids",
        parts=Parts(prefill_runner=ReplacedInputsPrefill, decode_runner=ReplacedInputsDecode),
    ),
    Fault(kind=UNREFRESHED, name="page table", parts=Parts(full_backend=StalePages), needs="attention"),
    Fault(kind=UNREFRESHED, name="state tables", parts=Parts(linear_backend=StaleState), needs="recurrent"),
    Fault(kind=UNREFRESHED, name="query starts", parts=Parts(linear_backend=StaleStarts), needs="recurrent"),
    Fault(kind=UNREFRESHED, name="track mask", parts=Parts(linear_backend=StaleTrackMask), needs="recurrent"),
    Fault(kind=CONSTANT, name="pages", parts=Parts(full_backend=PagesAtCapture), needs="attention"),
    Fault(kind=CONSTANT, name="tokens", parts=Parts(linear_backend=TokensAtCapture), needs="recurrent"),
    Fault(
        kind=CONSTANT,
        name="read back",
        parts=Parts(prefill_runner=ReadBackPrefill, decode_runner=ReadBackDecode),
        outcome=REFUSED,
    ),
    Fault(kind=PADDING, name="cache", parts=Parts(full_backend=LivePaddingPages), needs="attention"),
    Fault(kind=PADDING, name="state", parts=Parts(linear_backend=LivePaddingState), needs="recurrent"),
    Fault(kind=PADDING, name="track slots", parts=Parts(linear_backend=LivePaddingTrack), needs="recurrent"),
    Fault(
        kind=SHARED,
        name="view",
        parts=Parts(prefill_runner=SharedOutputPrefill, decode_runner=SharedOutputDecode),
    ),
    Fault(kind=RESET, name="inherited", parts=Parts(linear_backend=NoReset), needs="recurrent", outcome=ONLY_PREFILL),
    Fault(kind=RESET, name="dropped", parts=Parts(linear_backend=NeverContinued), needs="recurrent"),
    Fault(
        kind="table of another type",
        name="state indices",
        parts=Parts(linear_backend=WidenedIndices),
        needs="recurrent",
        outcome=GUARDED,
    ),
    Fault(
        kind="table of another type",
        name="page table",
        parts=Parts(full_backend=WidenedPages),
        needs="attention",
        outcome=GUARDED,
    ),
)
