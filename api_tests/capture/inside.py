"""A capture in this process, with parts of the test's own."""

from __future__ import annotations

import torch

from engine.capture.job import CaptureJob
from engine.capture.report import PhaseReport
from engine.capture.setup import CaptureSetup, Parts
from engine.launch import Phase


def captured(planned: CaptureJob, parts: Parts | None = None) -> dict[Phase, PhaseReport]:
    """The phases' reports of a capture on the CPU."""
    phases: dict[Phase, PhaseReport] = {}
    CaptureSetup(planned, torch.device("cpu"), emit=lambda *_, **__: None, keep=phases.__setitem__, parts=parts).run()
    return phases
