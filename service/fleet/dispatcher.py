"""Sends waiting captures to the broker, and says which of them nobody can run."""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from service.fleet.broker import Broker, BrokerDown
from service.fleet.needs import Ability, Need, kind_for, queue_of
from service.store.database import Database
from service.store.fleet import Waiting, WaitingList, Workers

_log = logging.getLogger("graphgate.fleet")
_BATCH = 200


class Dispatcher:
    """What is to be done with captures that wait. ``broker`` None: workers find them in the database by themselves."""

    def __init__(self, database: Database, broker: Broker | None, *, silent_s: float, resend_s: float) -> None:
        self._waiting = WaitingList(database)
        self._workers = Workers(database, silent_s=silent_s)
        self._broker = broker
        self._resend_s = resend_s

    def missing(self, need: Need) -> str | None:
        """The kind of worker that a capture of this need would wait for; None where one is there."""
        return None if kind_for(need, self._workers.abilities()) else need.missing

    def look(self, identities: Iterable[str] | None = None) -> int:
        """Deal with the waiting captures, all or these: say what they wait for, send what is to be sent.

        Returns:
            How many were sent.

        Raises:
            BrokerDown: the broker does not answer; what was said is kept.
        """
        workers = set(self._workers.abilities())
        rows = self._waiting.rows(identities)
        queues: dict[str, list[Waiting]] = defaultdict(list)
        for row in rows:
            kind = kind_for(row.need, workers)
            missing = row.need.missing if kind is None else None
            if row.waiting_for != missing:
                self._waiting.say(row.id, missing)
            if kind is not None:
                queues[queue_of(kind)].append(row)
        if self._broker is None or not queues:
            return 0
        return self._send(self._broker, queues, workers)

    def _send(self, broker: Broker, queues: dict[str, list[Waiting]], workers: set[Ability]) -> int:
        """Send what was never sent, and again what a broker has lost."""
        late = time.time() - self._resend_s
        late_somewhere = any(row.sent_at is not None and row.sent_at < late for rows in queues.values() for row in rows)
        depths = broker.depths(sorted({queue_of(worker.kind) for worker in workers})) if late_somewhere else {}
        total = sum(depths.values())
        awaited = Counter(row.sent_at is not None for rows in queues.values() for row in rows)[True]
        lost = late_somewhere and total < awaited
        due = [
            (row.id, queue)
            for queue, rows in queues.items()
            for row in rows
            if row.sent_at is None or (lost and row.sent_at < late)
        ]
        if lost:
            _log.warning("the broker has lost messages; they are sent again", extra={"has": total, "awaited": awaited})
        for begin in range(0, len(due), _BATCH):
            batch = due[begin : begin + _BATCH]
            with broker.sending() as send:
                for identity, queue in batch:
                    send(identity, queue)
            self._waiting.sent([identity for identity, _ in batch])
        return len(due)


__all__ = ["BrokerDown", "Dispatcher"]
