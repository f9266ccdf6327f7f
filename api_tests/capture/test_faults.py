"""What fails a capture is told apart: leftovers, read-backs, plain mistakes, backends that nobody knows.

The faults that a replay shows are in ``replay/faults.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from torch import Tensor

from api_tests.capture.inside import captured
from api_tests.capture.jobs import LLAMA, QWEN3_NEXT, job
from engine.capture.attention.full import FullAttentionBackend
from engine.capture.attention.linear import LinearAttentionBackend
from engine.capture.models.mixer import Mixer
from engine.capture.runners.inputs import StaticInputs
from engine.capture.setup import Parts

HYBRID = job(QWEN3_NEXT, allocation="per-phase")


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

    report = captured(HYBRID, Parts(linear_backend=ReadsBack))["decode"]
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
