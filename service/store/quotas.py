"""GPU seconds of each identity and day: reserved when a capture is accepted, settled by what it really took.

Settling asks nothing of the workers: whoever looks at a day first closes the reservations of captures that have ended.
A worker that dies, or a capture that another worker ends, is therefore counted like any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, insert, or_, select, update

from service.store.access_tables import gpu_days, gpu_reservations
from service.store.captures import ENDED
from service.store.database import Database, insert_new, now
from service.store.tables import captures

_ACCEPTING_S = 60.0
"""A reservation this old whose capture is not there belongs to an acceptance that failed."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """Whether the seconds were reserved, and how many of the day were taken before."""

    granted: bool
    taken: float


class Quotas:
    """The repository of GPU seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, subject: str, capture: str, seconds: float, *, limit: float) -> Reserved:
        """Take seconds of today for a capture, where they fit under the limit; two at once cannot pass it together.

        What the same capture has reserved today is not taken again: its acceptance is being repeated.
        """
        day = today()
        with self._database.write() as connection:
            _open_day(connection, subject, day)
            _settle(connection, subject, day)
            _begin_again(connection, capture)
            here = and_(gpu_days.c.subject == subject, gpu_days.c.day == day)
            if _has_reserved(connection, capture, day):
                return Reserved(True, float(connection.execute(select(gpu_days.c.seconds).where(here)).scalar_one()))
            taken = connection.execute(
                update(gpu_days)
                .where(here, gpu_days.c.seconds + seconds <= limit)
                .values(seconds=gpu_days.c.seconds + seconds)
            ).rowcount
            if taken:
                row = {"capture_id": capture, "subject": subject, "day": day, "reserved_at": now(), "reserved": seconds}
                connection.execute(insert(gpu_reservations), row)
            total = float(connection.execute(select(gpu_days.c.seconds).where(here)).scalar_one())
            return Reserved(bool(taken), total - seconds if taken else total)

    def release(self, capture: str) -> None:
        """Give back what was reserved for a capture that was not accepted after all."""
        with self._database.write() as connection:
            row = (
                connection.execute(
                    select(gpu_reservations).where(
                        gpu_reservations.c.capture_id == capture, gpu_reservations.c.used.is_(None)
                    )
                )
                .mappings()
                .one_or_none()
            )
            if row is not None:
                _close(connection, row, 0.0)

    def taken(self, subject: str) -> float:
        """Seconds of today that are used or reserved."""
        day = today()
        with self._database.write() as connection:
            _settle(connection, subject, day)
            query = select(gpu_days.c.seconds).where(gpu_days.c.subject == subject, gpu_days.c.day == day)
            return float(connection.execute(query).scalar() or 0.0)

    def forget(self, before: str) -> None:
        """Drop the days before that one (``2026-01-31``). For retention."""
        with self._database.write() as connection:
            connection.execute(delete(gpu_reservations).where(gpu_reservations.c.day < before))
            connection.execute(delete(gpu_days).where(gpu_days.c.day < before))


def today() -> str:
    """The day in UTC."""
    return datetime.now(UTC).date().isoformat()


def until_tomorrow() -> int:
    """Seconds to the next day in UTC, at least 1."""
    at = datetime.now(UTC)
    midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + timedelta(days=1)
    return max(1, int((midnight - at).total_seconds()))


def _open_day(connection: Connection, subject: str, day: str) -> None:
    """Make the day's row where it is not there; another process may do the same at the same moment."""
    row = {"subject": subject, "day": day, "seconds": 0.0}
    connection.execute(insert_new(connection, gpu_days), row)


def _has_reserved(connection: Connection, capture: str, day: str) -> bool:
    """Whether the capture's reservation of today is open; one that is not makes room for a new one."""
    here = gpu_reservations.c.capture_id == capture
    row = connection.execute(select(gpu_reservations.c.day, gpu_reservations.c.used).where(here)).one_or_none()
    if row is not None and row.day == day and row.used is None:
        return True
    connection.execute(delete(gpu_reservations).where(here))
    return False


def _settle(connection: Connection, subject: str, day: str) -> None:
    query = (
        select(gpu_reservations, captures.c.state, captures.c.report, captures.c.started_at, captures.c.finished_at)
        .join_from(gpu_reservations, captures, captures.c.id == gpu_reservations.c.capture_id, isouter=True)
        .where(
            gpu_reservations.c.subject == subject,
            gpu_reservations.c.day == day,
            gpu_reservations.c.used.is_(None),
            or_(captures.c.state.in_(ENDED), captures.c.id.is_(None)),
        )
    )
    for row in connection.execute(query).mappings().all():
        if row["state"] is None and _seconds_between(row["reserved_at"], now()) < _ACCEPTING_S:
            continue
        _close(connection, row, _used(row))


def _begin_again(connection: Connection, capture: str) -> None:
    """What an earlier attempt to accept the same capture reserved goes back: it made no capture."""
    query = select(gpu_reservations).where(gpu_reservations.c.capture_id == capture)
    row = connection.execute(query).mappings().one_or_none()
    if row is not None:
        _close(connection, row, 0.0)
        connection.execute(delete(gpu_reservations).where(gpu_reservations.c.capture_id == capture))


def _close(connection: Connection, row: RowMapping, used: float) -> None:
    open_still = and_(gpu_reservations.c.capture_id == row["capture_id"], gpu_reservations.c.used.is_(None))
    if connection.execute(update(gpu_reservations).where(open_still).values(used=used)).rowcount:
        connection.execute(
            update(gpu_days)
            .where(gpu_days.c.subject == row["subject"], gpu_days.c.day == row["day"])
            .values(seconds=gpu_days.c.seconds - row["reserved"] + used)
        )


def _used(row: RowMapping) -> float:
    """GPU seconds that the capture took.

    Of a measured one what its report says, of an emulated one none; without a report (its worker was lost, or it was
    cancelled) the time between its begin and its end, at most what was reserved.
    """
    if row["started_at"] is None:
        return 0.0
    report: dict[str, Any] = json.loads(row["report"] or "{}")
    if report.get("claim") == "emulated":
        return 0.0
    wall_s = report.get("wall_s")
    if wall_s is not None:
        return float(wall_s)
    return min(float(row["reserved"]), _seconds_between(row["started_at"], row["finished_at"] or now()))


def _seconds_between(begin: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())
