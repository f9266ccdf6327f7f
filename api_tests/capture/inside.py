"""A capture in this process, with parts of the caller's own."""

from __future__ import annotations

import torch

from engine.capture.job import CaptureJob
from engine.capture.report import PhaseReport
from engine.capture.setup import CaptureSetup, Parts
from engine.launch import Phase

CPU = torch.device("cpu")


def set_up(
    planned: CaptureJob, device: torch.device = CPU, parts: Parts | None = None
) -> tuple[CaptureSetup, dict[Phase, PhaseReport]]:
    """Capture and verify; what was set up for it, with its graphs, and the phases' reports."""
    phases: dict[Phase, PhaseReport] = {}
    setup = CaptureSetup(planned, device, emit=lambda *_, **__: None, keep=phases.__setitem__, parts=parts)
    setup.run()
    return setup, phases


def captured(planned: CaptureJob, parts: Parts | None = None, device: torch.device = CPU) -> dict[Phase, PhaseReport]:
    """The phases' reports of a capture."""
    return set_up(planned, device, parts)[1]
