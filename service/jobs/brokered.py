"""Captures as a broker hands them out: each message says which row to look at, and the row decides."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

from service.fleet.broker import Broker, BrokerDown, Delivery, open_broker
from service.fleet.machine import Machine
from service.fleet.needs import queue_of
from service.jobs.sources import DatabaseSource, Source, Taken
from service.settings import Settings
from service.store.queue import CaptureQueue

_log = logging.getLogger("graphgate.worker")
_WAIT_S = 0.5
_AGAIN_S = 2.0


class BrokerSource:
    """The broker's queues of a worker. While the broker is away, captures come from ``instead``."""

    def __init__(self, broker: Broker, names: list[str], queue: CaptureQueue, instead: DatabaseSource) -> None:
        self._broker = broker
        self._names = names
        self._queue = queue
        self._instead = instead
        self._open = ExitStack()
        self._receive: Callable[[float], Delivery | None] | None = None
        self._held: Delivery | None = None
        self._try_at = 0.0

    def next(self) -> Taken | None:
        try:
            delivery = self._delivery()
        except BrokerDown as error:
            self._lose(error)
            delivery = None
        if delivery is not None:
            return self._taken(delivery)
        return self._instead.next() if self._receive is None else None

    def wake(self) -> None:
        self._instead.wake()

    def close(self) -> None:
        """Leave the broker; a message that was not dealt with goes to another worker."""
        try:
            self._open.close()
        except BrokerDown:
            _log.info("the broker was gone before the worker left it")
        self._receive = None

    def _delivery(self) -> Delivery | None:
        if self._held is not None:
            return self._held
        if self._receive is None:
            if time.monotonic() < self._try_at:
                return None
            self._receive = self._open.enter_context(self._broker.receiving(self._names))
            _log.info("worker listens to the broker", extra={"queues": self._names})
        try:
            self._held = self._receive(_WAIT_S)
        except Exception as error:  # a connection that breaks in the middle shows itself in many ways
            raise BrokerDown(repr(error)) from error
        return self._held

    def _taken(self, delivery: Delivery) -> Taken | None:
        """Claim what the message names. The message stays held where the database does not answer."""
        claim = self._queue.claim(delivery.capture)
        if claim is not None:
            return Taken(claim, self._acknowledge)
        self._queue.put_off(delivery.capture)
        self._acknowledge()
        return None

    def _acknowledge(self) -> None:
        held, self._held = self._held, None
        try:
            if held is not None:
                held.done()
        except BrokerDown as error:
            self._lose(error)

    def _lose(self, error: BrokerDown) -> None:
        """Begin anew after a while. A message that was out comes again, and finds its capture claimed or ended."""
        _log.warning("the broker does not answer", extra={"why": str(error)[:300]})
        self._held = None
        self._try_at = time.monotonic() + _AGAIN_S
        self.close()
        self._open = ExitStack()


def source_by(settings: Settings) -> Callable[[CaptureQueue, Machine], Source]:
    """What opens a worker's source: the broker's queue of its kind, or without a broker the database.

    Raises:
        SettingsError: the broker of the settings cannot be used.
    """
    broker = open_broker(settings)

    def open_source(queue: CaptureQueue, machine: Machine) -> Source:
        source = DatabaseSource(queue)
        return source if broker is None else BrokerSource(broker, [queue_of(machine.kind)], queue, source)

    return open_source
