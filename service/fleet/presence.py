"""A worker's entry in the register, kept alive beside its loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.store.database import Database
from service.store.fleet import WorkerRow, Workers

_log = logging.getLogger("graphgate.worker")
_LONGEST_BEAT_S = 5.0


class Presence:
    """Registers the worker, and again and again says that it is there; ``silent_s`` is when others doubt it."""

    def __init__(self, database: Database, row: WorkerRow, *, silent_s: float) -> None:
        self._workers = Workers(database, silent_s=silent_s)
        self._row = row
        self._beat_s = min(_LONGEST_BEAT_S, silent_s / 4)
        self._capture: str | None = None
        self._news = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="worker-presence", daemon=True)

    def start(self) -> None:
        """Register, and go on."""
        self._tell()
        self._thread.start()

    def stop(self) -> None:
        """The worker leaves in good order."""
        self._over = True
        self._news.set()
        self._thread.join()
        try:
            self._workers.leave(self._row.id)
        except Exception:
            _log.warning("the worker could not sign off; it will be missed instead", exc_info=True)

    @contextmanager
    def busy(self, capture: str) -> Iterator[None]:
        """While the worker runs that capture."""
        self._capture = capture
        self._news.set()
        try:
            yield
        finally:
            self._capture = None
            self._news.set()

    def _run(self) -> None:
        while not self._over:
            self._news.wait(self._beat_s)
            self._news.clear()
            if not self._over:
                self._tell()

    def _tell(self) -> None:
        try:
            self._workers.beat(self._row, self._capture)
        except Exception:
            _log.warning("the register of workers cannot be written; the worker goes on", exc_info=True)
