"""Faults planted into the reference engine are found: each is one that serving engines have shipped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor  # noqa: E402 - torch may be absent

from api_tests.capture.inside import captured  # noqa: E402
from api_tests.capture.jobs import LLAMA, QWEN3_NEXT, job  # noqa: E402
from engine.capture.attention.batch import ForwardBatch  # noqa: E402
from engine.capture.attention.full import FullAttentionBackend  # noqa: E402
from engine.capture.attention.linear import LinearAttentionBackend  # noqa: E402
from engine.capture.attention.ragged import LinearMetadata  # noqa: E402
from engine.capture.job import CaptureJob  # noqa: E402
from engine.capture.models.mixer import Mixer  # noqa: E402
from engine.capture.report import PhaseReport  # noqa: E402
from engine.capture.runners.inputs import StaticInputs  # noqa: E402
from engine.capture.setup import Parts  # noqa: E402
from engine.launch import Phase  # noqa: E402

HYBRID = job(QWEN3_NEXT, allocation="per-phase")


def with_linear(planned: CaptureJob, backend: type[LinearAttentionBackend]) -> dict[Phase, PhaseReport]:
    return captured(planned, Parts(linear_backend=backend))


def test_without_a_fault_both_phases_are_ok() -> None:
    assert {phase: report.outcome for phase, report in captured(HYBRID).items()} == {"prefill": "ok", "decode": "ok"}


def test_metadata_that_replay_does_not_refresh() -> None:
    class Stale(LinearAttentionBackend):
        def prepare_replay(self, batch: ForwardBatch) -> None:
            """Forgets to write the batch into the static tables."""

    phases = with_linear(HYBRID, Stale)
    assert phases["prefill"].outcome == "mismatch"
    assert phases["decode"].outcome == "mismatch"


def test_a_pointer_to_buffers_that_were_replaced() -> None:
    class Replaced(LinearAttentionBackend):
        def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
            fresh = self._state_indices(batch).int()
            metadata = super()._replay_metadata(batch)
            table = self.tables[batch.mode].state_indices_list
            table[batch.batch_size - 1] = fresh
            metadata.state_indices = fresh
            return metadata

    assert with_linear(HYBRID, Replaced)["decode"].outcome == "mismatch"


def test_a_number_that_python_knew_at_capture() -> None:
    class Constant(LinearAttentionBackend):
        live_tokens = 0

        def prepare_capture(self, batch: ForwardBatch) -> None:
            super().prepare_capture(batch)
            self.live_tokens = int(batch.query_start_loc[-1])

        def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
            mixed = super().forward(mixer, inputs)
            if torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
                mixed[self.live_tokens :] = 0  # the number of tokens of the batch at capture
            return mixed

    assert with_linear(HYBRID, Constant)["prefill"].outcome == "mismatch"


def test_a_padding_row_that_writes_a_live_slot() -> None:
    class LivePadding(LinearAttentionBackend):
        def _state_indices(self, batch: ForwardBatch) -> Tensor:
            indices: Tensor = self._pools.requests.state_indices(batch.req_pool_indices)
            if batch.num_padding:
                indices[batch.batch_size - batch.num_padding :] = 1
            return indices

    phases = with_linear(HYBRID, LivePadding)
    found = [graph for graph in phases["decode"].graphs if graph.size > 1]
    assert phases["decode"].outcome == "mismatch"
    assert any(graph.state_rel > graph.tolerance for graph in found)


def test_a_state_that_a_fresh_request_inherits() -> None:
    class NoReset(LinearAttentionBackend):
        def _replay_metadata(self, batch: ForwardBatch) -> LinearMetadata:
            metadata = super()._replay_metadata(batch)
            metadata.has_initial.fill_(True)
            return metadata

    phases = with_linear(HYBRID, NoReset)
    assert phases["prefill"].outcome == "mismatch"
    wrong = [replay.scenario for replay in phases["prefill"].graphs[-1].replays if not replay.ok]
    assert "exact size, fresh requests" in wrong
    assert "one continued request" not in wrong
    assert phases["decode"].outcome == "ok"


def test_padding_tokens_left_over_from_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StaticInputs, "clear", lambda *_, **__: None)
    assert captured(job(LLAMA))["prefill"].outcome == "mismatch"


def test_a_read_back_to_the_host_fails_the_capture() -> None:
    class ReadsBack(LinearAttentionBackend):
        def forward(self, mixer: Mixer, inputs: Sequence[Tensor]) -> Tensor:
            assert self._metadata is not None
            if self._metadata.state_indices.max().item() >= -1:
                return super().forward(mixer, inputs)
            raise AssertionError

    report = with_linear(HYBRID, ReadsBack)["decode"]
    assert report.outcome == "capture_failed"
    assert report.error is not None
    assert report.error.type == "CaptureRefused"
    assert "item()" in report.error.message


def test_an_index_error_is_not_a_guard_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(FullAttentionBackend, "prepare_capture", fail)
    report = captured(job(LLAMA))["prefill"]
    assert report.outcome == "capture_failed"
    assert report.error is not None
    assert report.error.type == "IndexError"


def test_a_backend_that_nobody_knows_is_not_taken_for_another() -> None:
    report = captured(job(LLAMA, prefill="reticulated"))["prefill"]
    assert report.outcome == "infrastructure"
    assert report.error is not None
    assert "'reticulated'" in report.error.message
