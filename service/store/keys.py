"""API keys as they are kept."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, insert, select, update

from service.store.access_tables import api_keys
from service.store.audit import AuditEntry, note_action
from service.store.database import Database, now


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One key, without its secret. Times are as in the tables; ``gpu_seconds`` are per day."""

    prefix: str
    digest: str
    name: str
    scopes: tuple[str, ...]
    rate: str | None
    gpu_seconds: int | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None = None
    used_at: str | None = None

    def ended(self, at: str) -> str | None:
        """Why the key is not good at that time: "revoked", "expired", or None where it is."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= at else None


class Keys:
    """The repository of keys. Each change and its audit entry are one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: KeyRow, audit: AuditEntry) -> None:
        """Keep a new key."""
        values = {name: getattr(row, name) for name in row.__slots__} | {"scopes": ",".join(row.scopes)}
        with self._database.write() as connection:
            connection.execute(insert(api_keys), values)
            note_action(connection, audit)

    def get(self, prefix: str) -> KeyRow | None:
        """The key with that prefix, whatever became of it."""
        with self._database.read() as connection:
            return _get(connection, prefix)

    def all(self) -> list[KeyRow]:
        """Every key, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.prefix)).mappings()
            return [_row(row) for row in rows]

    def any_good(self) -> bool:
        """Whether there is a key that opens something at this moment."""
        at = now()
        return any(row.ended(at) is None for row in self.all())

    def revoke(self, prefix: str, audit: AuditEntry) -> KeyRow | None:
        """End the key from now on; the key as it was before, None where there is none."""
        with self._database.write() as connection:
            row = _get(connection, prefix)
            if row is not None and row.revoked_at is None:
                connection.execute(update(api_keys).where(api_keys.c.prefix == prefix).values(revoked_at=now()))
                note_action(connection, audit)
            return row

    def used(self, prefix: str) -> None:
        """The key was used just now."""
        with self._database.write() as connection:
            connection.execute(update(api_keys).where(api_keys.c.prefix == prefix).values(used_at=now()))


def _get(connection: Connection, prefix: str) -> KeyRow | None:
    row = connection.execute(select(api_keys).where(api_keys.c.prefix == prefix)).mappings().one_or_none()
    return None if row is None else _row(row)


def _row(row: RowMapping) -> KeyRow:
    return KeyRow(**{**row, "scopes": tuple(row["scopes"].split(","))})
