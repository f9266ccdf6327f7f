"""The workers that there are, the lease on work that one process does for all, and what of the queue was not sent."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, update

from service.fleet.needs import Ability, Need
from service.store.audit import AuditEntry, note_action
from service.store.captures import note
from service.store.database import Database, insert_new
from service.store.tables import captures, leases, workers


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """What a worker says of itself. ``memory_mib`` is its device's, in MiB; None: not known."""

    id: str
    kind: str
    gpu: str | None
    memory_mib: int | None
    driver: str | None
    torch: str | None
    version: str
    started_at: str

    @property
    def ability(self) -> Ability:
        """What it can run."""
        return Ability(self.kind, self.memory_mib)


class Workers:
    """The register of workers. ``silent_s``: after so many seconds without a sign of life one counts as gone."""

    def __init__(self, database: Database, *, silent_s: float) -> None:
        self._database = database
        self._silent_s = silent_s

    def beat(self, worker: WorkerRow, capture: str | None = None) -> None:
        """A sign of life; the first one registers the worker. ``capture``: what it runs now."""
        told = {"beat_at": time.time(), "capture_id": capture}
        with self._database.write() as connection:
            known = connection.execute(update(workers).where(workers.c.id == worker.id).values(**told))
            if not known.rowcount:
                row = {name: getattr(worker, name) for name in WorkerRow.__slots__}
                connection.execute(insert(workers), {**row, **told})
                note_action(connection, AuditEntry(actor="service", action="worker.registered", object=worker.id))

    def leave(self, worker: str) -> None:
        """The worker ends in good order: it is forgotten."""
        with self._database.write() as connection:
            connection.execute(delete(workers).where(workers.c.id == worker))

    def all(self) -> list[dict[str, Any]]:
        """Every worker, those that went silent too: ``alive`` says it."""
        with self._database.read() as connection:
            rows = connection.execute(select(workers).order_by(workers.c.kind, workers.c.id)).mappings().all()
        end = time.time() - self._silent_s
        return [
            {
                **{name: row[name] for name in WorkerRow.__slots__},
                "last_seen_at": _time(row["beat_at"]),
                "capture_id": row["capture_id"],
                "alive": row["beat_at"] >= end,
            }
            for row in rows
        ]

    def abilities(self) -> list[Ability]:
        """What the live workers can run."""
        alive = workers.c.beat_at >= time.time() - self._silent_s
        with self._database.read() as connection:
            rows = connection.execute(select(workers.c.kind, workers.c.memory_mib).where(alive)).all()
        return [Ability(row.kind, row.memory_mib) for row in rows]

    def forget(self, *, after_s: float) -> None:
        """Leave out those that have been silent for so long."""
        gone = workers.c.beat_at < time.time() - after_s
        with self._database.read() as connection:
            if connection.execute(select(workers.c.id).where(gone).limit(1)).first() is None:
                return
        with self._database.write() as connection:
            connection.execute(delete(workers).where(gone))


class Lease:
    """One kind of work that only one process may do at a time."""

    def __init__(self, database: Database, name: str, holder: str, *, for_s: float) -> None:
        self._database = database
        self._name = name
        self._holder = holder
        self._for_s = for_s

    def take(self) -> bool:
        """Take or renew it; False where another process has it."""
        moment = time.time()
        free = or_(leases.c.holder == self._holder, leases.c.until < moment)
        with self._database.write() as connection:
            connection.execute(insert_new(connection, leases), {"name": self._name, "holder": "", "until": 0.0})
            taken = connection.execute(
                update(leases)
                .where(leases.c.name == self._name, free)
                .values(holder=self._holder, until=moment + self._for_s)
            )
            return bool(taken.rowcount)

    def leave(self) -> None:
        """Let another process take it at once."""
        with self._database.write() as connection:
            mine = and_(leases.c.name == self._name, leases.c.holder == self._holder)
            connection.execute(update(leases).where(mine).values(until=0.0))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A capture in the queue: its need, when it was last sent (seconds of the epoch), what it is said to wait for."""

    id: str
    need: Need
    sent_at: float | None
    waiting_for: str | None


class WaitingList:
    """The queue as a dispatcher sees it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, identities: Iterable[str] | None = None) -> list[Waiting]:
        """The captures that wait, oldest first: all, or those of ``identities`` that do."""
        chosen: list[ColumnElement[bool]] = [captures.c.state == "queued"]
        if identities is not None:
            chosen.append(captures.c.id.in_(list(identities)))
        columns = ("id", "needs", "needs_gpu", "needs_memory_mib", "sent_at", "waiting_for")
        query = select(*(captures.c[name] for name in columns)).where(*chosen).order_by(captures.c.id)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [
            Waiting(row.id, Need(row.needs, row.needs_gpu, row.needs_memory_mib), row.sent_at, row.waiting_for)
            for row in rows
        ]

    def sent(self, identities: Iterable[str]) -> None:
        """These are with the broker now."""
        chosen = list(identities)
        if not chosen:
            return
        with self._database.write() as connection:
            here = and_(captures.c.state == "queued", captures.c.id.in_(chosen))
            connection.execute(update(captures).where(here).values(sent_at=time.time()))

    def say(self, identity: str, kind: str | None) -> None:
        """Say in the capture and in its events that it waits for a kind of worker, or (None) no longer does."""
        unsaid = captures.c.waiting_for.is_not(None) if kind is None else captures.c.waiting_for.is_distinct_from(kind)
        with self._database.write() as connection:
            changed = connection.execute(
                update(captures)
                .where(captures.c.id == identity, captures.c.state == "queued", unsaid)
                .values(waiting_for=kind)
            )
            if changed.rowcount:
                note(connection, identity, "waiting", {"waiting_for": kind, **_told(kind)})


def _told(kind: str | None) -> dict[str, str]:
    if kind is None:
        return {}
    return {"reason": f"No worker of the kind {kind} is there; the capture waits until one is."}


def _time(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
