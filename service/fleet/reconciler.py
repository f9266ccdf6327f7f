"""Compares the queue in the database with workers and broker, again and again, and puts right what does not agree.

Every API process has one; the lease lets one of them act. It takes back what dead workers held, sends what a broker
lost or what was accepted while it was away, and says which captures no worker can run.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading

from service.fleet.broker import Broker, BrokerDown
from service.fleet.dispatcher import Dispatcher
from service.settings import Settings
from service.store.database import Database
from service.store.fleet import Lease, Workers
from service.store.queue import recover

_log = logging.getLogger("graphgate.fleet")
_FORGET_S = 3600.0


class Reconciler:
    """See the module."""

    def __init__(self, database: Database, settings: Settings, broker: Broker | None) -> None:
        holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._every_s = settings.reconcile_s
        self._attempts = settings.capture_attempts
        self._database = database
        self._lease = Lease(database, "reconciler", holder, for_s=max(5.0, 3 * settings.reconcile_s))
        self._workers = Workers(database, silent_s=settings.capture_lease_s)
        self._dispatcher = Dispatcher(database, broker, silent_s=settings.capture_lease_s, resend_s=settings.resend_s)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def once(self) -> str:
        """One round, if no other process has the lease; what was done, in words.

        Raises:
            BrokerDown: the broker does not answer; the rest was done.
        """
        if not self._lease.take():
            return "another process holds the lease"
        lost = recover(self._database, attempts=self._attempts)
        if lost:
            _log.warning("captures taken back from silent workers", extra={"count": lost})
        self._workers.forget(after_s=_FORGET_S)
        sent = self._dispatcher.look()
        return f"{lost} taken back from silent workers, {sent} sent"

    def start(self) -> None:
        """Go on round by round, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End, and leave the lease to another process."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._lease.leave()
        except Exception:
            _log.warning("the reconciler's lease could not be left; it runs out", exc_info=True)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self.once()
            except BrokerDown as error:
                _log.warning("the broker does not answer; captures wait", extra={"why": str(error)[:300]})
            except Exception:
                _log.exception("a round of the reconciler failed; it goes on")
