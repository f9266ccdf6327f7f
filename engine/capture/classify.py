"""From how a worker process ended to what that means for the capture."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from engine.capture.process import Ending, Limits
from engine.capture.report import CaptureFailure, PhaseOutcome


@dataclass(frozen=True, slots=True)
class End:
    """How a worker ended: ``outcome`` is for the phases it had begun and not finished."""

    outcome: PhaseOutcome
    exit: str
    failure: CaptureFailure


def classify(ending: Ending, status: int, *, limits: Limits, output: str) -> End:
    """What an end without a complete report means. ``status``: exit status, negative for a signal."""
    if ending != "exited":
        return _stopped(ending, limits)
    if status < 0:
        return _signalled(-status, output)
    if status == 0:
        return _end(
            "infrastructure", "exit status 0", "ReportMissing", "The worker ended well and left no readable report."
        )
    if _MEMORY_ERROR.search(output[-_LAST_WORDS:]):
        said = "The worker ended for want of memory; see the end of its output. Fewer sizes or layers may help."
        return _end("oom", f"exit status {status}", "OutOfMemory", said)
    return _end(
        "crashed",
        f"exit status {status}",
        "WorkerExit",
        f"The worker ended with exit status {status} before its report was complete; see the end of its output.",
    )


def _stopped(ending: Ending, limits: Limits) -> End:
    """The end of a worker that was stopped, or lost with its warden."""
    seconds, mib = limits.timeout_s, limits.memory_bytes // 2**20
    ends: dict[Ending, End] = {
        "timeout": _end("timeout", f"stopped after {seconds:g} s", "CaptureTimeout", _TIMEOUT.format(seconds)),
        "cancelled": _end("cancelled", "stopped on request", "CaptureCancelled", "The capture was cancelled."),
        "memory": _end("oom", f"stopped above {mib} MiB", "MemoryLimit", _MEMORY.format(mib)),
        "output": _end(
            "crashed",
            f"stopped after {limits.output_bytes} bytes of output",
            "OutputLimit",
            f"The worker wrote more than {limits.output_bytes // 2**20} MiB to its output and was stopped; a capture "
            "that goes well writes next to nothing. See the end of it.",
        ),
        "lost": _end(
            "infrastructure",
            "killed with its warden",
            "WardenLost",
            "The process that watches over the worker was killed from outside, and the worker with it: out of memory "
            "is suspected where nobody did so on purpose.",
        ),
    }
    return ends[ending]


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


_LAST_WORDS = 2000
_MEMORY_ERROR = re.compile(
    r"^(MemoryError\b|std::bad_alloc|torch\.OutOfMemoryError|.*what\(\):\s+std::bad_alloc)", re.M
)
_MEMORY = (
    "The worker and what it started held more than {} MiB of this machine's memory together and were stopped. Ask for "
    "fewer sizes or layers, or allow more with memory_mib."
)
_TIMEOUT = "The capture was not done after {:g} s and was stopped. Raise timeout_s, or capture fewer sizes or layers."
