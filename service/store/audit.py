"""Who changed what, when, and what came of it: rows that are added, listed, and dropped when they are old."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from service.store.access_tables import audit_log
from service.store.database import Database, new_id, now


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that somebody did or was refused.

    ``actor`` is an identity's id, or ``cli:USER``; ``action`` such as ``capture.accepted``; ``object`` what it was done
    to; ``outcome`` "done" or "denied"; ``detail`` why, in words without credentials.
    """

    actor: str
    action: str
    object: str | None = None
    outcome: str = "done"
    request_id: str | None = None
    address: str | None = None
    detail: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Audit:
    """The repository of audit entries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, entry: AuditEntry) -> None:
        """Keep an entry."""
        with self._database.write() as connection:
            note_action(connection, entry)

    def page(
        self, *, limit: int, before: str | None, action: str | None, actor: str | None, outcome: str | None
    ) -> list[dict[str, Any]]:
        """Up to ``limit`` entries, newest first, older than the id ``before``."""
        query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(audit_log.c.id < before)
        for column, wanted in (
            (audit_log.c.action, action),
            (audit_log.c.actor, actor),
            (audit_log.c.outcome, outcome),
        ):
            if wanted is not None:
                query = query.where(column == wanted)
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def forget(self, before: str) -> int:
        """Drop what is older than that time; how many entries it was. For retention."""
        with self._database.write() as connection:
            return connection.execute(delete(audit_log).where(audit_log.c.at < before)).rowcount


def note_action(connection: Connection, entry: AuditEntry) -> None:
    """Add an entry in the transaction of the change that it tells of."""
    connection.execute(insert(audit_log), {"id": new_id("aud"), "at": now(), **entry.to_dict()})
