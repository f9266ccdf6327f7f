"""The worker process: ``python -m engine.capture.child --job FILE --report FILE --events FD``.

Reads one job, captures, leaves one report; it has no network. Started by :mod:`engine.capture.warden`, which holds the
other end of standard input and ends when the supervisor does; when it goes away, so does this process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.capture.files import write_atomically
from engine.capture.isolation import refuse_network
from engine.capture.job import SIZE_RULE, CaptureJob
from engine.capture.options import CPU_MEMORY_MIB
from engine.capture.report import CaptureFailure, CaptureReport, PhaseReport
from engine.capture.shape import SCALING_RULE
from engine.capture.unfit import Unfit
from engine.launch import Phase
from engine.version import VERSION

if TYPE_CHECKING:
    import torch

INSTALL = "Install the worker extra where the worker runs: pip install 'graphgate[worker]'."


class Journal:
    """Tells the supervisor what happens, and keeps the report on disk current."""

    def __init__(self, events: int, path: Path, report: CaptureReport) -> None:
        self._events = events
        self._path = path
        self.report = report

    def emit(self, event: str, **data: object) -> None:
        line = json.dumps({"event": event, "data": data}, default=str) + "\n"
        os.write(self._events, line.encode())

    def describe(self, **fields: Any) -> None:
        """Fill in fields of the report."""
        self.report = replace(self.report, **fields)
        self.write()

    def keep(self, phase: Phase, result: PhaseReport) -> None:
        """A phase's result, as far as it is known now."""
        self.describe(phases={**self.report.phases, phase: result})

    def write(self) -> None:
        write_atomically(self._path, json.dumps(self.report.to_dict(), allow_nan=False))


def main(argv: list[str] | None = None) -> int:
    """Run one job; the exit status is 0 whenever the report is complete, whatever it says."""
    parser = argparse.ArgumentParser(prog="engine.capture.child")
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--events", type=int, required=True)
    args = parser.parse_args(argv)
    job = CaptureJob.from_json(args.job.read_text(encoding="utf-8"))
    # An installed engine's own processes talk to each other over this machine's loopback interface.
    refuser = refuse_network() if job.options.engine == "reference" else "nobody"
    threading.Thread(target=_end_when_input_closes, daemon=True).start()
    journal = Journal(
        args.events,
        args.report,
        CaptureReport(
            id=job.id,
            phases={},
            allocation=job.options.allocation,
            seed=job.seed,
            model=job.shape.to_dict(),
            scaling=SCALING_RULE,
            size_rule=SIZE_RULE,
            versions={"graphgate": VERSION, "python": platform.python_version()},
        ),
    )
    journal.emit("worker.started", pid=os.getpid(), network_refused_by=refuser)
    try:
        if job.options.engine == "sglang":
            from engine.capture.adapters.sglang import run as run_engine

            run_engine(job, journal)
        else:
            run(job, journal)
    except Unfit as unfit:
        _fail_everywhere(job, journal, CaptureFailure(type=unfit.type, message=str(unfit)))
    journal.describe(complete=True)
    journal.emit("worker.done")
    return 0


def run(job: CaptureJob, journal: Journal) -> None:
    """Capture, with torch. Raises :class:`Unfit` where there is none, no such device, or no kernel for a layer."""
    try:
        import torch
    except ImportError as missing:
        raise Unfit(
            "TorchMissing", f"The capture worker needs torch, and it cannot be imported: {missing}. {INSTALL}"
        ) from missing
    from engine.capture.models.mixer import UnsupportedLayer
    from engine.capture.setup import CaptureSetup, described, outcome_of

    device = _device(job.options.device, torch.cuda.is_available())
    torch.set_num_threads(1)
    journal.describe(device=_device_name(device), versions={**journal.report.versions, **_versions(device)})
    _limit_memory(job.options.memory_mib, device)
    try:
        setup = CaptureSetup(job, device, emit=journal.emit, keep=journal.keep)
    except UnsupportedLayer as unsupported:
        raise Unfit("UnsupportedLayer", str(unsupported)) from unsupported
    except (RuntimeError, MemoryError) as failure:
        if outcome_of(failure) != "oom":
            raise
        for plan in job.plans:
            journal.keep(plan.phase, PhaseReport(outcome="oom", backend=plan.backend, error=described(failure)))
        return
    journal.describe(
        claim=setup.recorder.claim, recorder=setup.recorder.name, dtype=str(setup.dtype).removeprefix("torch.")
    )
    setup.run()
    journal.describe(estimate=setup.estimate())


def _fail_everywhere(job: CaptureJob, journal: Journal, failure: CaptureFailure) -> None:
    phases = {
        plan.phase: PhaseReport(outcome="infrastructure", backend=plan.backend, planned=plan.sizes, error=failure)
        for plan in job.plans
    }
    journal.describe(phases=phases, error=failure)


def _device(wanted: str, gpu_present: bool) -> torch.device:
    import torch

    if wanted == "cuda" and not gpu_present:
        raise Unfit(
            "NoGpu",
            "The capture asks for a CUDA device and this worker sees none. Ask for device auto or cpu, or "
            "send it to a worker with a GPU.",
        )
    return torch.device("cuda" if gpu_present and wanted != "cpu" else "cpu")


def _device_name(device: torch.device) -> str:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()})"


def _versions(device: torch.device) -> dict[str, str]:
    import torch

    versions = {"torch": str(torch.__version__)}
    if device.type == "cuda":
        versions["cuda"] = str(torch.version.cuda)
        versions["compute_capability"] = ".".join(map(str, torch.cuda.get_device_capability(device)))
    return versions


def _limit_memory(memory_mib: int | None, device: torch.device) -> None:
    """Let the capture take ``memory_mib`` MiB beyond what the process holds now; above that, allocations fail."""
    if device.type == "cuda":
        import torch

        if memory_mib is None:
            return
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory_mib * 2**20 / total), device)
        return
    import resource

    status = Path("/proc/self/status").read_text(encoding="ascii")
    held_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    limit = (held_kib + (memory_mib or CPU_MEMORY_MIB) * 1024) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _end_when_input_closes() -> None:
    """The kernel ends this process with its warden on Linux; elsewhere this does."""
    os.read(0, 1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # torch's teardown takes a second and has nothing left to do
