"""Where a worker's captures come from: the database itself, or a broker that says which row to look at."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from service.store.queue import CaptureQueue, Claim

_log = logging.getLogger("graphgate.worker")
_POLL_S = 0.5
_RECOVER_S = 2.0


def _nothing() -> None:
    """The database needs no acknowledgement: the row is the truth."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A capture that this worker has, and what to call once it has been dealt with, however that went."""

    claim: Claim
    done: Callable[[], None] = _nothing


class Source(Protocol):
    """Gives a worker its captures, one by one."""

    def next(self) -> Taken | None:
        """The next capture, waiting for one a moment at most; what the database refuses is raised."""

    def wake(self) -> None:
        """Stop waiting: there may be a capture, or the worker is to stop. From any thread."""

    def close(self) -> None:
        """No more is wanted."""


class DatabaseSource:
    """Asks the database twice a second, and takes back what silent workers held."""

    def __init__(self, queue: CaptureQueue) -> None:
        self._queue = queue
        self._wake = threading.Event()
        self._recovered = float("-inf")

    def next(self) -> Taken | None:
        self._wake.clear()
        taken = self.look()
        if taken is None:
            self._wake.wait(_POLL_S)
        return taken

    def look(self) -> Taken | None:
        """The oldest capture that fits, without waiting for one."""
        if time.monotonic() - self._recovered > _RECOVER_S:
            lost = self._queue.recover()
            self._recovered = time.monotonic()
            if lost:
                _log.warning("captures taken back from silent workers", extra={"count": lost})
        claim = self._queue.claim()
        return None if claim is None else Taken(claim)

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """Nothing is held."""
