"""How many captures there are in each state, and how long the oldest one has waited: for metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import func, select

from service.store.database import Database
from service.store.tables import captures


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """One look. ``states`` counts captures that have not ended; ``oldest_s`` is the age of the oldest waiting one, in
    seconds, 0 where none waits; ``workers`` counts those alive, by queue."""

    states: dict[str, int]
    oldest_s: float
    workers: dict[str, int] = field(default_factory=dict)


def take_census(database: Database) -> Census:
    """Count, in one read.

    Raises:
        SQLAlchemyError: the database cannot be read.
    """
    open_states = ("queued", "running")
    counts = select(captures.c.state, func.count()).where(captures.c.state.in_(open_states)).group_by(captures.c.state)
    oldest = select(func.min(captures.c.created_at)).where(captures.c.state == "queued")
    with database.read() as connection:
        found = {str(state): int(count) for state, count in connection.execute(counts).all()}
        since = connection.execute(oldest).scalar()
    age = 0.0 if since is None else (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    return Census(states={state: found.get(state, 0) for state in open_states}, oldest_s=max(0.0, age))
