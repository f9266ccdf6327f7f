"""A capture worker as a process of its own, over the same database as the API."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from service import logs
from service.jobs.worker import CaptureWorker
from service.settings import Settings
from service.store.database import Database
from service.store.migrate import migrate


def run_worker(settings: Settings) -> None:
    """Take captures until SIGTERM or SIGINT; a running capture then has its grace, and goes back into the queue."""
    logs.set_up(settings.log_level)
    database = Database(settings.database_file, wait_s=settings.database_wait_s, connections=4)
    migrate(database)
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
