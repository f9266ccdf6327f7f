"""A capture worker as a process of its own, over the same database as the API."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from service import logs
from service.jobs.worker import CaptureWorker
from service.settings import Settings
from service.store.opening import open_database


def run_worker(settings: Settings) -> None:
    """Take captures until SIGTERM or SIGINT; a running capture then has its grace, and goes back into the queue.

    Raises:
        StoreError: the database cannot be opened.
    """
    logs.set_up(settings.log_level)
    database = open_database(settings, connections=4)
    worker = CaptureWorker(database, settings)
    told: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        told.append(number)  # no lock may be taken here: the main thread may hold it

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    loop = threading.Thread(target=worker.run, name="capture-worker")
    loop.start()
    while loop.is_alive():
        if told:
            worker.stop()
        loop.join(0.2)
    database.close()
