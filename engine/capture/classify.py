"""From how a worker process ended to what that means for the capture."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from engine.capture.process import Ending
from engine.capture.report import CaptureFailure, PhaseOutcome


@dataclass(frozen=True, slots=True)
class End:
    """How a worker ended: ``outcome`` is for the phases it had begun and not finished."""

    outcome: PhaseOutcome
    exit: str
    failure: CaptureFailure


def classify(ending: Ending, status: int, *, timeout_s: float, output: str) -> End:
    """What an end without a complete report means. ``status``: exit status, negative for a signal."""
    if ending == "timeout":
        return _end("timeout", f"stopped after {timeout_s:g} s", "CaptureTimeout", _TIMEOUT.format(timeout_s))
    if ending == "cancelled":
        return _end("cancelled", "stopped on request", "CaptureCancelled", "The capture was cancelled.")
    if status < 0:
        return _signalled(-status, output)
    if status == 0:
        return _end(
            "infrastructure", "exit status 0", "ReportMissing", "The worker ended well and left no readable report."
        )
    return _end(
        "crashed",
        f"exit status {status}",
        "WorkerExit",
        f"The worker ended with exit status {status} before its report was complete; see the end of its output.",
    )


def _signalled(number: int, output: str) -> End:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGKILL:
        return _end(
            "oom",
            name,
            "KilledOutside",
            "The worker was killed by SIGKILL, and not by its supervisor: out of memory is suspected, since the "
            "kernel's out-of-memory killer ends processes so. Fewer sizes, fewer layers or a larger machine may help.",
        )
    if number == signal.SIGABRT and "bad_alloc" in output:
        return _end("oom", name, "OutOfMemory", "The worker ran into its memory limit outside of torch's allocator.")
    return _end("crashed", name, "WorkerCrashed", f"The worker was killed by {name}; see the end of its output.")


def _end(outcome: PhaseOutcome, exit_: str, type_: str, message: str) -> End:
    return End(outcome, exit_, CaptureFailure(type=type_, message=message))


_TIMEOUT = "The capture was not done after {:g} s and was stopped. Raise timeout_s, or capture fewer sizes or layers."
