"""Captures as seen by workers: claimed under a lease, kept alive, ended; whatever a worker loses comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, select, update

from service.store.captures import State, note
from service.store.database import Database, now
from service.store.tables import captures


@dataclass(frozen=True, slots=True)
class Claim:
    """A capture that this worker has; ``attempt`` counts from 1, ``job`` is the job's JSON."""

    id: str
    job: str
    attempt: int


class CaptureQueue:
    """The queue of one worker. Its name is in each row that it has; leases are in seconds."""

    def __init__(self, database: Database, worker: str, *, lease_s: float, attempts: int) -> None:
        self._database = database
        self._worker = worker
        self._lease_s = lease_s
        self._attempts = attempts

    def claim(self) -> Claim | None:
        """The oldest waiting capture, now running under this worker's lease; None where none waits."""
        with self._database.write() as connection:
            row = connection.execute(
                select(captures.c.id, captures.c.job, captures.c.attempts)
                .where(captures.c.state == "queued")
                .order_by(captures.c.id)
                .limit(1)
            ).one_or_none()
            if row is None:
                return None
            attempt = row.attempts + 1
            connection.execute(
                update(captures)
                .where(captures.c.id == row.id)
                .values(
                    state="running",
                    worker=self._worker,
                    lease_until=time.time() + self._lease_s,
                    started_at=now(),
                    attempts=attempt,
                )
            )
            note(connection, row.id, "running", {"worker": self._worker, "attempt": attempt})
            return Claim(row.id, row.job, attempt)

    def keep(self, identity: str, events: Sequence[tuple[str, dict[str, Any]]] = ()) -> bool:
        """Renew the lease and write down what happened.

        Returns:
            Whether the capture is still this worker's and wanted: False once it is to be cancelled, or was lost.
        """
        with self._database.write() as connection:
            row = connection.execute(select(captures.c.cancel_requested).where(self._mine(identity))).one_or_none()
            if row is None:
                return False
            connection.execute(
                update(captures).where(captures.c.id == identity).values(lease_until=time.time() + self._lease_s)
            )
            for name, data in events:
                note(connection, identity, name, data)
            return not row.cancel_requested

    def finish(self, identity: str, state: State, *, report: dict[str, Any] | None, reason: str | None) -> bool:
        """End the capture; False, and nothing is changed, where another worker has it by now."""
        with self._database.write() as connection:
            done = connection.execute(
                update(captures)
                .where(self._mine(identity))
                .values(
                    state=state,
                    finished_at=now(),
                    lease_until=None,
                    report=None if report is None else json.dumps(report),
                    reason=reason,
                )
            )
            if done.rowcount:
                note(connection, identity, state, {"reason": reason} if reason else {})
            return bool(done.rowcount)

    def give_back(self, identity: str, reason: str) -> None:
        """Put an interrupted capture back into the queue, as if this attempt had not been."""
        with self._database.write() as connection:
            row = connection.execute(
                select(captures.c.attempts, captures.c.cancel_requested).where(self._mine(identity))
            ).one_or_none()
            if row is not None:
                _requeue(connection, identity, row.attempts - 1, reason, cancelled=row.cancel_requested)

    def recover(self) -> int:
        """Take captures from workers that went silent: back into the queue, or dead after too many attempts."""
        lost = and_(captures.c.state == "running", captures.c.lease_until < time.time())
        with self._database.read() as connection:
            if connection.execute(select(captures.c.id).where(lost).limit(1)).first() is None:
                return 0
        with self._database.write() as connection:
            rows = connection.execute(
                select(captures.c.id, captures.c.attempts, captures.c.worker, captures.c.cancel_requested).where(lost)
            ).all()
            for row in rows:
                reason = f"The worker {row.worker} went silent during attempt {row.attempts}."
                if row.attempts >= self._attempts and not row.cancel_requested:
                    values = {"state": "dead", "finished_at": now(), "lease_until": None, "reason": reason}
                    connection.execute(update(captures).where(captures.c.id == row.id).values(**values))
                    note(connection, row.id, "dead", {"reason": reason})
                else:
                    _requeue(connection, row.id, row.attempts, reason, cancelled=row.cancel_requested)
            return len(rows)

    def _mine(self, identity: str) -> ColumnElement[bool]:
        return and_(captures.c.id == identity, captures.c.state == "running", captures.c.worker == self._worker)


def _requeue(connection: Any, identity: str, attempts: int, reason: str, *, cancelled: bool) -> None:
    state = "cancelled" if cancelled else "queued"
    connection.execute(
        update(captures)
        .where(captures.c.id == identity)
        .values(
            state=state,
            attempts=attempts,
            worker=None,
            lease_until=None,
            reason=reason,
            finished_at=now() if cancelled else None,
        )
    )
    note(connection, identity, state, {"reason": reason})
