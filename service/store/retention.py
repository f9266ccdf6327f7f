"""What is too old to be kept, taken out in small batches so that nobody waits long for the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, delete, exists, select, tuple_

from service.store.captures import ENDED
from service.store.database import Database, first_id_at, text_of
from service.store.tables import capture_events, captures, validation_rules, validations


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows one batch took out, the events of the captures not counted."""

    captures: int
    validations: int

    @property
    def any(self) -> bool:
        """Whether there may be more."""
        return bool(self.captures or self.validations)


def prune(database: Database, before: datetime, *, batch: int = 200) -> Pruned:
    """Take out up to ``batch`` captures that ended before that moment, with their events, and as many validations that
    were answered before it. A validation that a kept capture refers to is kept, whatever its age."""
    return Pruned(_captures(database, before, batch), _validations(database, before, batch))


def _captures(database: Database, before: datetime, batch: int) -> int:
    old = (
        select(captures.c.id)
        .where(captures.c.finished_at < text_of(before), captures.c.state.in_(sorted(ENDED)))
        .order_by(captures.c.finished_at)
        .limit(batch)
    )
    with database.read() as connection:
        if connection.execute(old.limit(1)).first() is None:
            return 0
    with database.write() as connection:
        chosen = connection.execute(old.with_for_update(skip_locked=True)).scalars().all()
        connection.execute(delete(capture_events).where(capture_events.c.capture_id.in_(chosen)))
        connection.execute(delete(captures).where(captures.c.id.in_(chosen)))
    return len(chosen)


def _validations(database: Database, before: datetime, batch: int) -> int:
    referred = exists().where(captures.c.validation_id == validations.c.id)
    old = (
        select(validations.c.id, validations.c.rules)
        .where(and_(validations.c.id < first_id_at("val", before), ~referred))
        .order_by(validations.c.id)
        .limit(batch)
    )
    with database.read() as connection:
        rows = connection.execute(old).all()
    if not rows:
        return 0
    pairs = [(rule, row.id) for row in rows for rule in row.rules.split(",") if rule]
    chosen = [row.id for row in rows]
    with database.write() as connection:
        if pairs:
            pair = tuple_(validation_rules.c.rule, validation_rules.c.validation_id)
            connection.execute(delete(validation_rules).where(pair.in_(pairs)))
        # Asked again: since the reading somebody may have asked for a capture of one.
        gone = connection.execute(delete(validations).where(validations.c.id.in_(chosen), ~referred))
    return gone.rowcount
