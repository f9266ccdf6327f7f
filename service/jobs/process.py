"""A capture worker as a process of its own, over the same database as the API, with or without a broker."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from engine.capture.process import DEFAULT_PYTHON
from service import logs
from service.fleet.machine import examine
from service.jobs.brokered import source_by
from service.jobs.worker import CaptureWorker
from service.observation.endpoint import metrics_endpoint
from service.observation.metrics import Metrics
from service.observation.tracing import open_tracing
from service.settings import Settings, SettingsError
from service.store.opening import open_database


def run_worker(settings: Settings) -> None:
    """Take captures until SIGTERM or SIGINT; a running capture then has its grace, and goes back into the queue.

    Raises:
        SettingsError: captures cannot run here, or the broker cannot be used.
        MetricsAddressError, TracingError: what the worker says about itself cannot be told there.
        StoreError: the database cannot be opened.
    """
    logs.set_up(settings.log_level)
    python = settings.worker_python or DEFAULT_PYTHON
    machine = examine(python)
    if machine.torch is None:
        raise SettingsError(
            f"The interpreter for captures, {python}, has no torch. "
            "Install it there: pip install 'graphgate[worker]', or set GRAPHGATE_WORKER_PYTHON to one that has it."
        )
    open_source = source_by(settings)
    tracing, metrics = open_tracing("graphgate-worker"), Metrics()
    told: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        told.append(number)  # no lock may be taken here: the main thread may hold it

    with metrics_endpoint(metrics, settings.metrics_address):
        database = open_database(settings, connections=4)
        worker = CaptureWorker(database, settings, open_source=open_source, metrics=metrics, tracing=tracing)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)
        loop = threading.Thread(target=worker.run, args=(machine,), name="capture-worker")
        loop.start()
        while loop.is_alive():
            if told:
                worker.stop()
            loop.join(0.2)
        database.close()
    tracing.close()
