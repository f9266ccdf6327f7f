"""The loop of a capture worker: claim, run in a fresh process, keep the lease alive, write down the end."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections import deque
from typing import Any

from engine.capture.job import CaptureJob
from engine.capture.report import CaptureReport
from engine.capture.supervisor import CaptureEvent, Supervisor
from service.settings import Settings
from service.store.captures import State
from service.store.database import Database
from service.store.queue import CaptureQueue, Claim

_log = logging.getLogger("graphgate.worker")
_POLL_S = 0.5
_RECOVER_S = 2.0
_RETRY_S = 2.0
_LOOK_S = 0.2


class CaptureWorker:
    """Runs one capture at a time until it is told to stop."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._queue = CaptureQueue(
            database, self.name, lease_s=settings.capture_lease_s, attempts=settings.capture_attempts
        )
        workdir = settings.data / "captures"
        python = settings.worker_python
        self._supervisor = Supervisor(workdir, python) if python else Supervisor(workdir)
        self._grace_s = settings.capture_grace_s
        self._beat_s = min(1.0, settings.capture_lease_s / 5)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._seen_alive = time.monotonic()

    def wake(self) -> None:
        """Look into the queue now."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; a running capture has the grace to end, then it goes back into the queue."""
        self._stopping.set()
        self._wake.set()

    @property
    def silent_s(self) -> float:
        """Seconds since the loop last gave a sign of life."""
        return time.monotonic() - self._seen_alive

    def run(self) -> None:
        """Work until :meth:`stop`. What the database refuses is tried again; nothing else ends the loop."""
        _log.info("worker started", extra={"worker": self.name})
        recovered = float("-inf")
        while not self._stopping.is_set():
            self._seen_alive = time.monotonic()
            self._wake.clear()
            try:
                if time.monotonic() - recovered > _RECOVER_S:
                    lost = self._queue.recover()
                    recovered = time.monotonic()
                    if lost:
                        _log.warning("captures taken back from silent workers", extra={"count": lost})
                claim = self._queue.claim()
                if claim is not None:
                    self._work(claim)
                    continue
            except Exception:
                _log.exception("the worker's loop failed; it goes on")
                self._stopping.wait(_RETRY_S)
                continue
            self._wake.wait(_POLL_S)
        _log.info("worker stopped", extra={"worker": self.name})

    def _work(self, claim: Claim) -> None:
        _log.info("capture started", extra={"capture": claim.id, "attempt": claim.attempt})
        try:
            job = CaptureJob.from_json(claim.job)
        except (ValueError, KeyError, TypeError) as error:
            self._queue.finish(claim.id, "failed", report=None, reason=f"The job cannot be read: {error}")
            return
        watch = _Watch(self, claim.id)
        watch.start()
        report = self._supervisor.run(job, on_event=watch.on_event, cancel=watch.cancel)
        watch.end()
        if watch.interrupted and not report.complete:
            self._queue.give_back(claim.id, "The worker was told to stop; the capture begins again.")
            _log.info("capture given back", extra={"capture": claim.id})
            return
        state, reason = _end_of(report, cancelled=watch.cancel.is_set())
        kept = self._queue.finish(claim.id, state, report=report.to_dict(), reason=reason)
        _log.info("capture ended", extra={"capture": claim.id, "state": state, "kept": kept})


def _end_of(report: CaptureReport, *, cancelled: bool) -> tuple[State, str | None]:
    """The state that a report means. It succeeded where it says something about the launch, whatever it says."""
    if cancelled and not report.complete:
        return "cancelled", "cancelled while it ran"
    outcomes = {phase.outcome for phase in report.phases.values()}
    if not outcomes or (outcomes <= {"infrastructure", "skipped"} and "infrastructure" in outcomes):
        why = report.error or next((phase.error for phase in report.phases.values() if phase.error), None)
        return "failed", why.message if why else "The worker's machine could not run the capture."
    return "succeeded", None


class _Watch(threading.Thread):
    """Beside a running capture: renews the lease, writes events down, sees cancellation and the end of the grace."""

    def __init__(self, worker: CaptureWorker, capture: str) -> None:
        super().__init__(name=f"watch-{capture}", daemon=True)
        self.cancel = threading.Event()
        self.interrupted = False
        self._worker = worker
        self._capture = capture
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._over = threading.Event()
        self._new = threading.Event()

    def on_event(self, event: CaptureEvent) -> None:
        """Called by the supervisor, in its own thread: only takes the event down."""
        self._events.append((event.name, {"elapsed_s": event.at, **event.data}))

    def end(self) -> None:
        """Write down what is left, and stop."""
        self._over.set()
        self.join()

    def run(self) -> None:
        stop_at: float | None = None
        worker = self._worker
        kept = float("-inf")
        while True:
            over = self._over.wait(_LOOK_S)
            if not over and not self._events and time.monotonic() - kept < worker._beat_s:
                continue
            kept = time.monotonic()
            batch = [self._events.popleft() for _ in range(len(self._events))]
            try:
                wanted = worker._queue.keep(self._capture, batch)
            except Exception:
                _log.exception("the lease could not be renewed", extra={"capture": self._capture})
                self._events.extendleft(reversed(batch))
                wanted = True
            worker._seen_alive = time.monotonic()
            if over:
                return
            if not wanted:
                self.cancel.set()
            if worker._stopping.is_set():
                stop_at = stop_at or time.monotonic() + worker._grace_s
                if time.monotonic() >= stop_at and not self.cancel.is_set():
                    self.interrupted = True
                    self.cancel.set()
