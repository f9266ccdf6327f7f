"""Beside the API: sends each accepted capture at once, so that accepting one waits for no broker."""

from __future__ import annotations

import logging
import queue
import threading

from service.fleet.broker import BrokerDown
from service.fleet.dispatcher import Dispatcher

_log = logging.getLogger("graphgate.fleet")
_MOST = 10_000


class Sender:
    """A thread with a list of ids. What it cannot send, or loses with its process, the reconciler sends."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._accepted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="capture-sender", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def accepted(self, capture: str) -> None:
        """This capture is in the database now."""
        if self._accepted.qsize() < _MOST:
            self._accepted.put(capture)

    def stop(self) -> None:
        """Send what is there, and end."""
        self._accepted.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch = [self._accepted.get()]
            while not self._accepted.empty():
                batch.append(self._accepted.get())
            stopping = None in batch
            captures = [capture for capture in batch if capture is not None]
            try:
                if captures:
                    self._dispatcher.look(captures)
            except BrokerDown as error:
                _log.warning("captures wait until the broker answers", extra={"why": str(error)[:300]})
            except Exception:
                _log.exception("captures could not be sent; the reconciler will do it")
