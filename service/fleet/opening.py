"""The API's part of the fleet: what is asked of it, and the threads behind that."""

from __future__ import annotations

from service.fleet.broker import open_broker
from service.fleet.dispatcher import Dispatcher
from service.fleet.needs import Need
from service.fleet.reconciler import Reconciler
from service.fleet.sender import Sender
from service.settings import Settings
from service.store.database import Database
from service.store.fleet import Workers


class Fleet:
    """Who can run captures, and how captures reach them.

    Raises:
        SettingsError: the broker of the settings cannot be used.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        broker = open_broker(settings)
        silent_s = settings.capture_lease_s
        self.workers = Workers(database, silent_s=silent_s)
        self._own_worker = settings.runs_worker
        self._dispatcher = Dispatcher(database, broker, silent_s=silent_s, resend_s=settings.resend_s)
        self._sender = None if broker is None else Sender(self._dispatcher)
        self._reconciler = Reconciler(database, settings, broker)

    def missing(self, need: Need) -> str | None:
        """The kind of worker that such a capture would wait for; None where one is there, or is just being started."""
        if self._own_worker and not self.workers.abilities():
            return None
        return self._dispatcher.missing(need)

    def accepted(self, capture: str) -> None:
        """A capture is in the database: it is sent, if there is a broker. Waits for nothing."""
        if self._sender is not None:
            self._sender.accepted(capture)

    def start(self) -> None:
        """Begin to send and to reconcile."""
        if self._sender is not None:
            self._sender.start()
        self._reconciler.start()

    def stop(self) -> None:
        """End both."""
        if self._sender is not None:
            self._sender.stop()
        self._reconciler.stop()
