"""Beside a running capture: what keeps it this worker's, and sees when it must end."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from engine.capture.supervisor import CaptureEvent
from service.store.queue import CaptureQueue, Claim

_log = logging.getLogger("graphgate.worker")
_LOOK_S = 0.2


class Watch(threading.Thread):
    """Renews the lease, writes events down, sees cancellation, the end of the grace, and a lease that ran out.

    ``stopping`` says whether the worker was told to stop, ``alive`` is called at each look. Set afterwards:
    ``interrupted``, where the capture was ended because the worker stops; ``lost``, where its lease could not be
    renewed in time, so that another worker may have the capture by now: the one here was ended before that.
    """

    def __init__(
        self,
        queue: CaptureQueue,
        claim: Claim,
        *,
        lease_s: float,
        grace_s: float,
        stopping: Callable[[], bool],
        alive: Callable[[], None],
    ) -> None:
        super().__init__(name=f"watch-{claim.id}", daemon=True)
        self.cancel = threading.Event()
        self.interrupted = False
        self.lost = False
        self._queue = queue
        self._claim = claim
        self._lease_s = lease_s
        self._beat_s = min(1.0, lease_s / 5)
        self._grace_s = grace_s
        self._stopping = stopping
        self._alive = alive
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._over = threading.Event()

    def on_event(self, event: CaptureEvent) -> None:
        """Called by the supervisor, in its own thread: only takes the event down."""
        self._events.append((event.name, {"elapsed_s": event.at, **event.data}))

    def end(self) -> None:
        """Write down what is left, and stop."""
        self._over.set()
        self.join()

    def run(self) -> None:
        kept = asked = time.monotonic()
        stop_at: float | None = None
        while True:
            over = self._over.wait(_LOOK_S)
            moment = time.monotonic()
            if over or self._events or moment - asked >= self._beat_s:
                asked = moment
                if self._keep():
                    kept = moment
            self._alive()
            if over:
                return
            if time.monotonic() - kept > self._lease_s:
                self.lost = True
                self.cancel.set()
            if self._stopping():
                stop_at = stop_at or moment + self._grace_s
                if moment >= stop_at and not self.cancel.is_set():
                    self.interrupted = True
                    self.cancel.set()

    def _keep(self) -> bool:
        """Renew the lease and write down what is new; False where the database could not be asked."""
        batch = [self._events.popleft() for _ in range(len(self._events))]
        try:
            wanted = self._queue.keep(self._claim, batch)
        except Exception:
            _log.warning("the lease could not be renewed", exc_info=True, extra={"capture": self._claim.id})
            self._events.extendleft(reversed(batch))
            return False
        if not wanted:
            self.cancel.set()
        return True
