"""Idempotency keys: whoever puts the row there answers the request; everybody else is told what became of it."""

from __future__ import annotations

import json
import secrets
import time
import zlib
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    RowMapping,
    String,
    Table,
    Text,
    and_,
    delete,
    select,
    tuple_,
    update,
)

from service.store.database import Database, insert_new, new_id
from service.store.tables import metadata

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("subject", String(160), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("reserved", String(28), nullable=False),
    Column("holder", String(32), nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("status", Integer),
    Column("headers", Text),
    Column("body", LargeBinary),
    Index("idempotency_keys_expires", "expires_at"),
)
"""``subject`` is who asks, ``fingerprint`` what for. ``reserved`` ends the ids of what the request makes, so that a
second attempt makes nothing twice. Until ``lease_until`` (seconds of the epoch) ``holder`` is at work; ``status`` is
there once it has answered. ``body`` is compressed (zlib)."""

_PURGED = 500
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it was given: headers in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Held:
    """The key is this request's: ``reserved`` ends the ids that it makes, ``again`` says that it was begun before."""

    holder: str
    reserved: str
    again: bool


@dataclass(frozen=True, slots=True)
class Busy:
    """Another request is at work under this key: for ``seconds`` more, if nothing is heard of it."""

    seconds: float


Found = Held | Kept | Busy | Literal["other"]
"""What a request that names a key is told; ``other``: the key belongs to another request."""


class IdempotencyKeys:
    """The repository. ``lease_s``: after so many seconds without a sign of life a request counts as dead;
    ``kept_s``: how long a key is remembered."""

    def __init__(self, database: Database, *, lease_s: float, kept_s: float) -> None:
        self._database = database
        self.lease_s = lease_s
        self._kept_s = kept_s

    def take(self, subject: str, key: str, fingerprint: str) -> Found:
        """Take the key for a request, or learn why not."""
        now, holder = time.time(), secrets.token_hex(16)
        suffix = new_id("").removeprefix("_")
        mine: dict[str, object] = {"holder": holder, "lease_until": now + self.lease_s}
        fresh = {**mine, "fingerprint": fingerprint, "reserved": suffix, "expires_at": now + self._kept_s}
        here = _here(subject, key)
        with self._database.write() as connection:
            new = insert_new(connection, idempotency_keys).values(subject=subject, key=key, **fresh)
            if connection.execute(new.returning(idempotency_keys.c.holder)).first() is not None:
                _purge(connection, now)
                return Held(holder, suffix, again=False)
            row = connection.execute(select(idempotency_keys).where(here).with_for_update()).mappings().one()
            if row["expires_at"] < now:
                empty = {"status": None, "headers": None, "body": None}
                connection.execute(update(idempotency_keys).where(here).values(**fresh, **empty))
                return Held(holder, suffix, again=False)
            if row["fingerprint"] != fingerprint:
                return "other"
            if row["status"] is not None:
                return _kept(row)
            if row["lease_until"] > now:
                return Busy(row["lease_until"] - now)
            connection.execute(update(idempotency_keys).where(here).values(**mine))
            return Held(holder, row["reserved"], again=True)

    def renew(self, subject: str, key: str, holder: str) -> None:
        """A sign of life of the request that has the key."""
        self._set(subject, key, holder, lease_until=time.time() + self.lease_s)

    def keep(self, subject: str, key: str, holder: str, answer: Kept) -> None:
        """Write the answer down. Nothing happens where somebody else has taken the key over."""
        body = zlib.compress(answer.body, _LEVEL)
        self._set(subject, key, holder, status=answer.status, headers=json.dumps(answer.headers), body=body)

    def let_go(self, subject: str, key: str, holder: str) -> None:
        """The request ended without an answer that lasts: the next one with this key may try at once."""
        self._set(subject, key, holder, lease_until=0.0)

    def _set(self, subject: str, key: str, holder: str, **values: object) -> None:
        mine = and_(_here(subject, key), idempotency_keys.c.holder == holder, idempotency_keys.c.status.is_(None))
        with self._database.write() as connection:
            connection.execute(update(idempotency_keys).where(mine).values(**values))


def _here(subject: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.subject == subject, idempotency_keys.c.key == key)


def _purge(connection: Connection, now: float) -> None:
    """With each new key some that are over go, so that there are never many of them."""
    table = idempotency_keys.c
    query = select(table.subject, table.key).where(table.expires_at < now).limit(_PURGED)
    old = connection.execute(query.with_for_update(skip_locked=True)).all()
    if old:
        connection.execute(delete(idempotency_keys).where(tuple_(table.subject, table.key).in_([*map(tuple, old)])))


def _kept(row: RowMapping) -> Kept:
    headers = tuple((str(name), str(value)) for name, value in json.loads(row["headers"]))
    return Kept(row["status"], headers, zlib.decompress(row["body"]))
