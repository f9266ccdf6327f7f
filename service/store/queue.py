"""Captures as seen by workers: claimed under a lease, kept alive, ended; whatever a worker loses comes back.

Every change names the claim that it is of: the row's ``fence``, which each claim raises. A worker that lost its capture
without knowing it changes nothing, however late it comes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, or_, select, true, update

from service.fleet.needs import CPU, Ability
from service.store.captures import State, note
from service.store.database import Database, now
from service.store.tables import captures


@dataclass(frozen=True, slots=True)
class Claim:
    """A capture that this worker has; ``attempt`` counts from 1, ``job`` is the job's JSON.

    ``fence`` is unique among the claims of a capture, also where an attempt did not count.
    """

    id: str
    job: str
    attempt: int
    fence: int


class CaptureQueue:
    """The queue of one worker. Its name is in each row that it has; leases are in seconds.

    ``ability``: what the worker can run; None takes everything.
    """

    def __init__(
        self, database: Database, worker: str, *, lease_s: float, attempts: int, ability: Ability | None = None
    ) -> None:
        self._database = database
        self._worker = worker
        self._lease_s = lease_s
        self._attempts = attempts
        self._fits = true() if ability is None else can_run(ability)

    def claim(self, identity: str | None = None) -> Claim | None:
        """A waiting capture that fits, now running under this worker's lease: that one, or else the oldest.

        None where there is none, which a second delivery of the same message finds too.
        """
        wanted = true() if identity is None else captures.c.id == identity
        with self._database.write() as connection:
            row = connection.execute(
                select(captures.c.id, captures.c.job, captures.c.attempts, captures.c.fence)
                .where(captures.c.state == "queued", wanted, self._fits)
                .order_by(captures.c.id)
                .limit(1)
                .with_for_update(skip_locked=identity is None)  # the one that was asked for is worth a moment
            ).one_or_none()
            if row is None:
                return None
            claim = Claim(row.id, row.job, row.attempts + 1, row.fence + 1)
            connection.execute(
                update(captures)
                .where(captures.c.id == row.id)
                .values(
                    state="running",
                    worker=self._worker,
                    lease_until=time.time() + self._lease_s,
                    started_at=now(),
                    attempts=claim.attempt,
                    fence=claim.fence,
                    waiting_for=None,
                )
            )
            note(
                connection, row.id, "running", {"worker": self._worker, "attempt": claim.attempt, "fence": claim.fence}
            )
            return claim

    def put_off(self, identity: str) -> None:
        """A capture that was sent here and does not fit: it is sent again in a while, perhaps to a worker it fits."""
        with self._database.write() as connection:
            here = and_(captures.c.id == identity, captures.c.state == "queued")
            connection.execute(update(captures).where(here).values(sent_at=time.time()))

    def keep(self, claim: Claim, events: Sequence[tuple[str, dict[str, Any]]] = ()) -> bool:
        """Renew the lease and write down what happened.

        Returns:
            Whether the capture is still this claim's and wanted: False once it is to be cancelled, or was lost.
        """
        with self._database.write() as connection:
            kept = connection.execute(
                update(captures).where(_of(claim)).values(lease_until=time.time() + self._lease_s)
            )
            if not kept.rowcount:
                return False
            for name, data in events:
                note(connection, claim.id, name, data)
            return not connection.execute(select(captures.c.cancel_requested).where(_of(claim))).scalar_one()

    def finish(self, claim: Claim, state: State, *, report: dict[str, Any] | None, reason: str | None) -> bool:
        """End the capture; False, and nothing is changed, where it is another claim's by now."""
        with self._database.write() as connection:
            done = connection.execute(
                update(captures)
                .where(_of(claim))
                .values(
                    state=state,
                    finished_at=now(),
                    lease_until=None,
                    report=None if report is None else json.dumps(report),
                    reason=reason,
                )
            )
            if done.rowcount:
                note(connection, claim.id, state, {"reason": reason} if reason else {})
            return bool(done.rowcount)

    def give_back(self, claim: Claim, reason: str) -> None:
        """Put an interrupted capture back into the queue, as if this attempt had not been."""
        with self._database.write() as connection:
            back_to_queue(connection, claim.id, claim.fence, claim.attempt - 1, reason)

    def recover(self) -> int:
        """Take captures from workers that went silent; see :func:`recover`."""
        return recover(self._database, attempts=self._attempts)


def recover(database: Database, *, attempts: int) -> int:
    """Take captures from workers that went silent: back into the queue, or dead after ``attempts``; how many."""
    lost = and_(captures.c.state == "running", captures.c.lease_until < time.time())
    with database.read() as connection:
        if connection.execute(select(captures.c.id).where(lost).limit(1)).first() is None:
            return 0
    with database.write() as connection:
        rows = connection.execute(
            select(captures.c.id, captures.c.attempts, captures.c.worker, captures.c.fence, captures.c.cancel_requested)
            .where(lost)
            .order_by(captures.c.id)
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            reason = f"The worker {row.worker} went silent during attempt {row.attempts}."
            if row.attempts >= attempts and not row.cancel_requested:
                values = {"state": "dead", "finished_at": now(), "lease_until": None, "reason": reason}
                connection.execute(update(captures).where(captures.c.id == row.id).values(**values))
                note(connection, row.id, "dead", {"reason": reason})
            else:
                back_to_queue(connection, row.id, row.fence, row.attempts, reason)
        return len(rows)


def back_to_queue(connection: Connection, identity: str, fence: int, attempts: int, reason: str) -> None:
    """End a claim without an end of the capture: it waits again, or is cancelled where somebody asked for that."""
    mine = _claimed(identity, fence)
    waiting = connection.execute(
        update(captures)
        .where(mine, captures.c.cancel_requested.is_(False))
        .values(state="queued", attempts=attempts, worker=None, lease_until=None, sent_at=None, reason=reason)
    )
    if waiting.rowcount:
        note(connection, identity, "queued", {"reason": reason})
        return
    ended = connection.execute(
        update(captures)
        .where(mine)
        .values(state="cancelled", attempts=attempts, worker=None, lease_until=None, finished_at=now(), reason=reason)
    )
    if ended.rowcount:
        note(connection, identity, "cancelled", {"reason": reason})


def can_run(worker: Ability) -> ColumnElement[bool]:
    """The captures that such a worker can run: :meth:`service.fleet.needs.Need.met_by`, as a condition."""
    right = captures.c.needs != "gpu"
    if worker.kind != CPU:
        right = or_(right, captures.c.needs_gpu.is_(None), captures.c.needs_gpu == worker.kind)
    if worker.memory_mib is None:
        return right
    return and_(right, or_(captures.c.needs_memory_mib.is_(None), captures.c.needs_memory_mib <= worker.memory_mib))


def _of(claim: Claim) -> ColumnElement[bool]:
    return _claimed(claim.id, claim.fence)


def _claimed(identity: str, fence: int) -> ColumnElement[bool]:
    return and_(captures.c.id == identity, captures.c.state == "running", captures.c.fence == fence)
