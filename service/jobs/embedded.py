"""A capture worker inside the API's own process, in a thread of its own."""

from __future__ import annotations

import threading

from service.jobs.worker import CaptureWorker


class EmbeddedWorker:
    """Starts a worker's loop in a thread, and ends it within its grace."""

    def __init__(self, worker: CaptureWorker) -> None:
        self._worker = worker
        self._thread = threading.Thread(target=worker.run, name="capture-worker", daemon=True)

    def start(self) -> None:
        """Begin to take captures."""
        self._thread.start()

    def wake(self) -> None:
        """A capture was accepted: look into the queue now."""
        self._worker.wake()

    @property
    def trouble(self) -> str | None:
        """Why captures are not being taken; None where they are."""
        if not self._thread.is_alive():
            return "the embedded worker has stopped"
        if self._worker.silent_s > 30:
            return f"the embedded worker has been silent for {self._worker.silent_s:.0f} s"
        return None

    def tell(self) -> None:
        """Tell the worker to stop, without waiting: the grace of a running capture begins."""
        self._worker.stop()

    def stop(self) -> None:
        """Tell the worker to stop and wait for it; what it had not ended goes back into the queue."""
        self._worker.stop()
        self._thread.join()
