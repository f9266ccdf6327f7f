"""Captures as seen by those who ask for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from service.fleet.needs import ANYWHERE, Need
from service.store.database import Database, now
from service.store.filters import Filter
from service.store.tables import capture_events, captures, validations

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "dead"]
ENDED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "dead"})

_INNER = {"job", "report", "options", "worker", "lease_until", "fence", "sent_at"}
_SHORT = [column for column in captures.columns if column.name not in _INNER and not column.name.startswith("needs")]

_OF_VALIDATION = [validations.c[name] for name in ("model", "verdict", "release", "gpu")]


class QueueFull(Exception):
    """As many captures are waiting as may wait."""


@dataclass(frozen=True, slots=True)
class CaptureEventRow:
    """One thing that happened: ``seq`` counts from 1 within a capture."""

    seq: int
    at: str
    name: str
    data: dict[str, Any]


class Captures:
    """The repository of captures."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        *,
        identity: str,
        validation_id: str,
        options: dict[str, Any],
        job: str,
        queue: int,
        need: Need = ANYWHERE,
        waiting_for: str | None = None,
        created_by: str | None = None,
    ) -> None:
        """Accept a capture. ``waiting_for``: the kind of worker that it needs, where none is there.

        Raises:
            QueueFull: ``queue`` captures are waiting already.
        """
        with self._database.write() as connection:
            self._database.alone(connection, "captures.queue")
            waiting = connection.execute(
                select(func.count()).select_from(captures).where(captures.c.state == "queued")
            ).scalar_one()
            if waiting >= queue:
                raise QueueFull
            connection.execute(
                insert(captures),
                {
                    "id": identity,
                    "created_at": now(),
                    "state": "queued",
                    "validation_id": validation_id,
                    "options": json.dumps(options),
                    "job": job,
                    "attempts": 0,
                    "cancel_requested": False,
                    "needs": need.device,
                    "needs_gpu": need.gpu,
                    "needs_memory_mib": need.memory_mib,
                    "fence": 0,
                    "waiting_for": waiting_for,
                    "created_by": created_by,
                },
            )
            note(connection, identity, "queued", {"waiting_for": waiting_for} if waiting_for else {})

    def get(self, identity: str) -> dict[str, Any] | None:
        """The capture with its validation and its report."""
        query = (
            select(captures, validations.c.body)
            .join(validations, validations.c.id == captures.c.validation_id)
            .where(captures.c.id == identity)
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return {
            **_short(row),
            "capture": json.loads(row["options"]),
            "validation": json.loads(row["body"]),
            "report": None if row["report"] is None else json.loads(row["report"]),
        }

    def state(self, identity: str) -> str | None:
        """The state alone."""
        with self._database.read() as connection:
            return connection.execute(select(captures.c.state).where(captures.c.id == identity)).scalar()

    def page(self, wanted: Filter, *, limit: int, before: str | None) -> list[dict[str, Any]]:
        """Up to ``limit`` captures in short, newest first, older than the id ``before``."""
        joined = select(*_SHORT, *_OF_VALIDATION).join(validations, validations.c.id == captures.c.validation_id)
        query = wanted.of_captures(joined, before=before).limit(limit)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [{**_short(row), **{column.name: row[column.name] for column in _OF_VALIDATION}} for row in rows]

    def news(self, identity: str, *, after: int, limit: int = 500) -> tuple[str | None, list[CaptureEventRow]]:
        """The state, and what happened after the event number ``after``, in order; both of the same moment."""
        query = (
            select(capture_events)
            .where(capture_events.c.capture_id == identity, capture_events.c.seq > after)
            .order_by(capture_events.c.seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            state = connection.execute(select(captures.c.state).where(captures.c.id == identity)).scalar()
            rows = connection.execute(query).mappings().all()
        return state, [CaptureEventRow(row["seq"], row["at"], row["name"], json.loads(row["data"])) for row in rows]

    def cancel(self, identity: str) -> str | None:
        """Ask for an end; the state before. A waiting capture ends at once, a running one when its worker sees it."""
        with self._database.write() as connection:
            look = select(captures.c.state).where(captures.c.id == identity).with_for_update()
            state = connection.execute(look).scalar()
            here = captures.c.id == identity
            if state == "queued":
                values = {"state": "cancelled", "finished_at": now(), "reason": "cancelled while it waited"}
                connection.execute(update(captures).where(here).values(cancel_requested=True, **values))
                note(connection, identity, "cancelled", {"reason": values["reason"]})
            elif state == "running":
                asked = connection.execute(
                    update(captures).where(here, captures.c.cancel_requested.is_(False)).values(cancel_requested=True)
                )
                if asked.rowcount:
                    note(connection, identity, "cancel.requested", {})
            return state


def note(connection: Connection, identity: str, name: str, data: dict[str, Any]) -> None:
    """Add an event, in the transaction of the change that it tells of; the capture's row is locked for its number."""
    connection.execute(select(captures.c.id).where(captures.c.id == identity).with_for_update()).one()
    last = select(func.coalesce(func.max(capture_events.c.seq), 0)).where(capture_events.c.capture_id == identity)
    connection.execute(
        insert(capture_events),
        {
            "capture_id": identity,
            "seq": connection.execute(last).scalar_one() + 1,
            "at": now(),
            "name": name[:80],
            "data": json.dumps(data, default=str),
        },
    )


def _short(row: RowMapping) -> dict[str, Any]:
    return {column.name: row[column.name] for column in _SHORT}
