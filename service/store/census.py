"""How many captures there are in each state, and how long the oldest one has waited: for metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import case, func, select

from service.store.database import Database
from service.store.tables import captures, workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """One look. ``states`` counts captures that wait, run, or were given up; ``oldest_s`` is the age of the oldest
    waiting one, in seconds, 0 where none waits; ``workers`` counts those alive, by kind,
    ``unserved`` the captures that wait for a kind of which there is none."""

    states: dict[str, int]
    oldest_s: float
    workers: dict[str, int] = field(default_factory=dict)
    unserved: dict[str, int] = field(default_factory=dict)


def take_census(database: Database, *, silent_s: float) -> Census:
    """Count, in one read. A worker without a sign of life for ``silent_s`` seconds counts no more, its kind still does.

    Raises:
        SQLAlchemyError: the database cannot be read.
    """
    told = ("queued", "running", "dead")
    counts = select(captures.c.state, func.count()).where(captures.c.state.in_(told)).group_by(captures.c.state)
    oldest = select(func.min(captures.c.created_at)).where(captures.c.state == "queued")
    is_alive = case((workers.c.beat_at >= time.time() - silent_s, 1), else_=0)
    alive = select(workers.c.kind, func.sum(is_alive)).group_by(workers.c.kind)
    missing = (
        select(captures.c.waiting_for, func.count())
        .where(captures.c.state == "queued", captures.c.waiting_for.is_not(None))
        .group_by(captures.c.waiting_for)
    )
    with database.read() as connection:
        found = {str(state): int(count) for state, count in connection.execute(counts).all()}
        there = {str(kind): int(count) for kind, count in connection.execute(alive).all()}
        unserved = {str(kind): int(count) for kind, count in connection.execute(missing).all()}
        since = connection.execute(oldest).scalar()
    age = 0.0 if since is None else (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    return Census(
        states={state: found.get(state, 0) for state in told},
        oldest_s=max(0.0, age),
        workers=there,
        unserved=unserved,
    )
