"""Runs each capture in a fresh process, and turns whatever becomes of it into a report. No torch here."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.capture.classify import End, classify
from engine.capture.environment import worker_environment
from engine.capture.files import write_atomically
from engine.capture.folders import JobFolder, job_folder, sweep
from engine.capture.job import CaptureJob
from engine.capture.options import CPU_MEMORY_MIB
from engine.capture.process import DEFAULT_PYTHON, Limits, Worker, python_command
from engine.capture.processes import machine_bytes
from engine.capture.report import CaptureFailure, CaptureReport, PhaseReport
from engine.launch import Phase

MOST_EVENTS = 10_000
LARGEST_REPORT = 16 * 2**20
MOST_OUTPUT = 64 * 2**20
OVERHEAD_MIB = 4096
"""MiB of the machine's memory that a worker may hold beyond what its capture may take: torch, CUDA's libraries."""

MOST_OF_MACHINE = 0.9
"""The share of the machine's memory above which a worker is stopped, whatever it was allowed."""

IMPORT_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class CaptureEvent:
    """Something that the worker process did, seen from outside: ``at`` is in seconds since the process was started."""

    name: str
    at: float
    data: Mapping[str, Any] = field(default_factory=dict)


class Supervisor:
    """Runs captures below ``workdir`` with the interpreter ``python``, which needs torch; this process does not.

    ``overhead_mib`` and ``output_bytes`` bound what the processes of one capture may hold of the machine's memory
    beyond the job's own ``memory_mib``, and what they may print.
    """

    def __init__(
        self,
        workdir: Path,
        python: str = DEFAULT_PYTHON,
        *,
        overhead_mib: int = OVERHEAD_MIB,
        output_bytes: int = MOST_OUTPUT,
    ) -> None:
        self._workdir = workdir
        self._python = python
        self._overhead_mib = overhead_mib
        self._output_bytes = output_bytes

    def sweep(self) -> int:
        """Clear away what captures below ``workdir`` left whose supervisor was killed: folders, processes. How many."""
        return sweep(self._workdir)

    def run(
        self,
        job: CaptureJob,
        *,
        on_event: Callable[[CaptureEvent], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> CaptureReport:
        """Run one job to its end and return its report; whatever the worker process does, this raises nothing.

        ``on_event`` is called in this thread for each event, the first being ``worker.spawned`` with the process id.
        Setting ``cancel`` stops the capture. Afterwards nothing is left of it, neither process nor file.
        """
        begun = time.monotonic()
        log = _EventLog(begun, on_event)
        self.sweep()
        try:
            with job_folder(self._workdir) as folder:
                report = self._supervise(job, folder, log, cancel or threading.Event())
        except OSError as failure:
            error = CaptureFailure(type=type(failure).__name__, message=f"The worker could not be run: {failure}.")
            phases: dict[Phase, PhaseReport] = {
                plan.phase: PhaseReport(outcome="infrastructure", backend=plan.backend, error=error)
                for plan in job.plans
            }
            report = CaptureReport(id=job.id, phases=phases, error=error, exit="not started")
        return replace(report, order=tuple(log.names), wall_s=round(time.monotonic() - begun, 3))

    def _supervise(self, job: CaptureJob, folder: JobFolder, log: _EventLog, cancel: threading.Event) -> CaptureReport:
        job_file, report_file = folder.path / "job.json", folder.path / "report.json"
        write_atomically(job_file, job.to_json())

        def command(events: int) -> list[str]:
            return python_command(
                self._python,
                "engine.capture.child",
                *("--job", str(job_file), "--report", str(report_file), "--events", str(events)),
            )

        environment = worker_environment(os.environ, folder=folder.path, import_root=IMPORT_ROOT)
        worker = Worker(command, folder=folder, environment=environment, on_line=log.line)
        log.add("worker.spawned", {"pid": worker.pid})
        limits = self._limits(job)
        ending, status = worker.wait(limits, cancelled=cancel.is_set)
        end = classify(ending, status, limits=limits, output=worker.tail)
        log.add("worker.ended", {"exit": end.exit})
        return _finished(job, _read(report_file), end, log.names, worker.tail)

    def _limits(self, job: CaptureJob) -> Limits:
        wanted = ((job.options.memory_mib or CPU_MEMORY_MIB) + self._overhead_mib) * 2**20
        machine = machine_bytes()
        memory = wanted if machine is None else min(wanted, int(machine * MOST_OF_MACHINE))
        return Limits(timeout_s=job.options.timeout_s, memory_bytes=memory, output_bytes=self._output_bytes)


class _EventLog:
    """Events in the order in which they arrived."""

    def __init__(self, begun: float, on_event: Callable[[CaptureEvent], None] | None) -> None:
        self._begun = begun
        self._on_event = on_event
        self.names: list[str] = []

    def line(self, line: bytes) -> None:
        """One line of the event pipe; what is not an event is passed over, since it says nothing."""
        try:
            value = json.loads(line)
            name, data = str(value["event"]), dict(value["data"])
        except (ValueError, KeyError, TypeError):
            return
        self.add(name, data)

    def add(self, name: str, data: Mapping[str, Any]) -> None:
        if len(self.names) >= MOST_EVENTS:
            return
        self.names.append(name)
        if self._on_event is not None:
            self._on_event(CaptureEvent(name, round(time.monotonic() - self._begun, 4), data))


def _read(path: Path) -> CaptureReport | CaptureFailure:
    """The report that the worker left, or why there is none."""
    try:
        if path.stat().st_size > LARGEST_REPORT:
            return CaptureFailure(type="ReportTooLarge", message=f"The report is larger than {LARGEST_REPORT} bytes.")
        return CaptureReport.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return CaptureFailure(type="ReportMissing", message="The worker left no report.")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        return CaptureFailure(type="ReportUnreadable", message=f"The worker's report cannot be read: {failure!r}.")


def _finished(
    job: CaptureJob, left: CaptureReport | CaptureFailure, end: End, events: list[str], tail: str
) -> CaptureReport:
    """The worker's own report where it is complete; otherwise what it left, the gaps filled by how it ended."""
    if isinstance(left, CaptureReport) and left.complete:
        return replace(left, exit=end.exit if end.exit != "exit status 0" else "done", output_tail=tail)
    unreadable = isinstance(left, CaptureFailure) and left.type != "ReportMissing"
    base = left if isinstance(left, CaptureReport) else CaptureReport(id=job.id, phases={})
    failure = left if isinstance(left, CaptureFailure) and unreadable else end.failure
    outcome = "infrastructure" if unreadable else end.outcome
    phases = dict(base.phases)
    for plan in job.plans:
        if plan.phase in phases:
            continue
        seen = [name for name in events if name.startswith(f"{plan.phase}.")]
        begun = bool(seen) or not any(name.startswith(("prefill.", "decode.")) for name in events)
        phases[plan.phase] = PhaseReport(
            outcome=outcome if begun else "skipped",
            backend=plan.backend,
            planned=plan.sizes,
            error=failure if begun else None,
            note=f"The worker's last event here was {seen[-1]}." if seen else "The worker ended before this phase.",
        )
    return replace(base, phases=phases, error=failure, exit=end.exit, output_tail=tail, complete=False)
