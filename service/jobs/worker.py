"""The loop of a capture worker: claim, run in a fresh process, keep the lease alive, write down the end."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from engine.capture.job import CaptureJob
from engine.capture.process import DEFAULT_PYTHON
from engine.capture.report import CaptureReport
from engine.capture.supervisor import Supervisor
from service.fleet.machine import Machine, examine
from service.fleet.presence import Presence
from service.jobs.sources import DatabaseSource, Source
from service.jobs.watch import Watch
from service.observation.metrics import Metrics
from service.observation.tracing import Tracing
from service.settings import Settings
from service.store.captures import State
from service.store.database import Database
from service.store.queue import CaptureQueue, Claim

_log = logging.getLogger("graphgate.worker")
_RETRY_S = 2.0
_WRITE_AGAIN_S = 0.5
_WRITE_FOR_S = 600.0

T = TypeVar("T")

OpenSource = Callable[[CaptureQueue, Machine], Source]
"""Makes the source of a worker that is such a machine."""


def from_database(queue: CaptureQueue, machine: Machine) -> Source:  # noqa: ARG001 - every machine asks in the same way
    """The source where there is no broker."""
    return DatabaseSource(queue)


class CaptureWorker:
    """Runs one capture at a time until it is told to stop. ``open_source`` makes what gives it captures."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        open_source: OpenSource = from_database,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._database = database
        self._settings = settings
        self._open_source = open_source
        self._metrics = metrics or Metrics()
        self._tracing = tracing or Tracing()
        self._python = settings.worker_python or DEFAULT_PYTHON
        self._supervisor = Supervisor(settings.data / "captures", self._python)
        self._stopping = threading.Event()
        self._source: Source | None = None
        self._seen_alive = time.monotonic()

    def wake(self) -> None:
        """Look into the queue now."""
        if self._source is not None:
            self._source.wake()

    def stop(self) -> None:
        """Claim nothing more; a running capture has the grace to end, then it goes back into the queue."""
        self._stopping.set()
        self.wake()

    @property
    def silent_s(self) -> float:
        """Seconds since the loop last gave a sign of life."""
        return time.monotonic() - self._seen_alive

    def _seen(self) -> None:
        self._seen_alive = time.monotonic()

    def run(self, machine: Machine | None = None) -> None:
        """Work until :meth:`stop`. What the database refuses is tried again; nothing else ends the loop.

        ``machine``: what this worker is, where that was found out already.
        """
        machine = machine or examine(self._python)
        settings = self._settings
        queue = CaptureQueue(
            self._database,
            self.name,
            lease_s=settings.capture_lease_s,
            attempts=settings.capture_attempts,
            ability=machine.ability,
        )
        source = self._source = self._open_source(queue, machine)
        presence = Presence(self._database, machine.row(self.name), silent_s=settings.capture_lease_s)
        presence.start()
        _log.info("worker started", extra={"worker": self.name, "kind": machine.kind})
        try:
            while not self._stopping.is_set():
                self._seen()
                try:
                    taken = source.next()
                    if taken is None:
                        continue
                    with presence.busy(taken.claim.id):
                        self._work(queue, taken.claim)
                    taken.done()
                except Exception:
                    _log.exception("the worker's loop failed; it goes on")
                    self._stopping.wait(_RETRY_S)
        finally:
            source.close()
            presence.stop()
        _log.info("worker stopped", extra={"worker": self.name})

    def _work(self, queue: CaptureQueue, claim: Claim) -> None:
        _log.info("capture started", extra={"capture": claim.id, "attempt": claim.attempt})
        try:
            job = CaptureJob.from_json(claim.job)
        except (ValueError, KeyError, TypeError) as error:
            queue.finish(claim, "failed", report=None, reason=f"The job cannot be read: {error}")
            return
        watch = Watch(
            queue,
            claim,
            lease_s=self._settings.capture_lease_s,
            grace_s=self._settings.capture_grace_s,
            stopping=self._stopping.is_set,
            alive=self._seen,
        )
        watch.start()
        begun = time.monotonic()
        with self._tracing.span("capture", **{"graphgate.capture": claim.id, "graphgate.attempt": str(claim.attempt)}):
            report = self._supervisor.run(job, on_event=watch.on_event, cancel=watch.cancel)
        seconds = time.monotonic() - begun
        watch.end()
        if watch.lost and not report.complete:
            _log.warning("capture ended here: its lease could not be renewed", extra={"capture": claim.id})
        elif watch.interrupted and not report.complete:
            self._write(lambda: queue.give_back(claim, "The worker was told to stop; the capture begins again."))
            _log.info("capture given back", extra={"capture": claim.id})
        else:
            state, reason = _end_of(report, cancelled=watch.cancel.is_set())
            kept = self._write(lambda: queue.finish(claim, state, report=report.to_dict(), reason=reason))
            if kept:
                self._metrics.capture(report, state, seconds)
            _log.info("capture ended", extra={"capture": claim.id, "state": state, "kept": kept})

    def _write(self, change: Callable[[], T]) -> T:
        """Make the change, again and again while the database is away: the work behind it would be lost.

        It is given up after ten minutes, or the grace of a worker that is to stop: the lease has ended by then, and
        somebody else has the capture, or will have it.
        """
        begun = time.monotonic()
        while True:
            try:
                return change()
            except Exception:
                waited = time.monotonic() - begun
                if waited > (self._settings.capture_grace_s if self._stopping.is_set() else _WRITE_FOR_S):
                    raise
                _log.warning("the end of a capture cannot be written yet", exc_info=True)
                self._seen()
                time.sleep(_WRITE_AGAIN_S)


def _end_of(report: CaptureReport, *, cancelled: bool) -> tuple[State, str | None]:
    """The state that a report means. It succeeded where it says something about the launch, whatever it says."""
    if cancelled and not report.complete:
        return "cancelled", "cancelled while it ran"
    outcomes = {phase.outcome for phase in report.phases.values()}
    if not outcomes or (outcomes <= {"infrastructure", "skipped"} and "infrastructure" in outcomes):
        why = report.error or next((phase.error for phase in report.phases.values() if phase.error), None)
        return "failed", why.message if why else "The worker's machine could not run the capture."
    return "succeeded", None
