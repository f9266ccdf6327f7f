"""API keys on the way of every request: looked up in the database, and remembered for a few seconds."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from service.problems import Problem
from service.security.identity import SCOPES, Identity
from service.security.keys import PREFIX_LENGTH, digest_of, prefix_of, same
from service.security.refusal import Refused
from service.store.database import now
from service.store.keys import KeyRow, Keys
from service.workroom import Workroom

REMEMBERED_S = 5.0
"""A key that is revoked stops working everywhere within this time."""

_USED_S = 60.0
_UNKNOWN = 1024
_log = logging.getLogger("graphgate.access")


class Keyring:
    """Finds whose key it is. ``rate`` and ``gpu_seconds`` are for keys that have none of their own."""

    def __init__(self, keys: Keys, room: Workroom, *, rate: str | None, gpu_seconds: int | None) -> None:
        self._keys = keys
        self._room = room
        self._rate = rate
        self._gpu_seconds = gpu_seconds
        self._known: dict[str, tuple[KeyRow, Identity, float]] = {}
        self._unknown: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[KeyRow | None]] = {}
        self._noting: set[asyncio.Task[None]] = set()

    def knows(self, text: str) -> bool:
        """Whether this very key was good when it was last looked up, however long ago."""
        known = self._known.get(prefix_of(text) or "")
        return known is not None and same(known[0].digest, digest_of(text))

    def remembered(self, text: str) -> Identity | None:
        """Whose key it is, where that was looked up a moment ago and still holds: the way of most requests."""
        known = self._known.get(text[3 : 3 + PREFIX_LENGTH])
        if known is None or time.monotonic() - known[2] >= REMEMBERED_S or not same(known[0].digest, digest_of(text)):
            return None
        return known[1] if known[0].ended(now()) is None else None

    async def identity(self, text: str) -> Identity:
        """Whose key it is.

        Raises:
            Refused: nobody's, or one that has ended.
            SQLAlchemyError, Problem: the database could not be asked.
        """
        prefix = prefix_of(text)
        if prefix is None:
            raise Refused("malformed", "This is not the form of an API key (gg_PREFIX_SECRET); it may have been cut.")
        row, identity = await self._find(prefix)
        if not same(row.digest, digest_of(text)):
            raise _unknown()
        ended = row.ended(now())
        if ended is not None:
            why = "was revoked" if ended == "revoked" else f"expired at {row.expires_at}"
            raise Refused("revoked" if ended == "revoked" else "expired", f"The API key {why}.", actor=identity.id)
        return identity

    async def _find(self, prefix: str) -> tuple[KeyRow, Identity]:
        at = time.monotonic()
        known = self._known.get(prefix)
        if known is not None and at - known[2] < REMEMBERED_S:
            return known[0], known[1]
        if at - self._unknown.get(prefix, -REMEMBERED_S) < REMEMBERED_S:
            raise _unknown()
        row = await self._ask(prefix)
        if row is None:
            self._known.pop(prefix, None)
            if len(self._unknown) >= _UNKNOWN:
                self._unknown.clear()
            self._unknown[prefix] = at
            raise _unknown()
        identity = self._identity(row)
        self._known[prefix] = (row, identity, at)
        self._note_use(row)
        return row, identity

    async def _ask(self, prefix: str) -> KeyRow | None:
        """Ask the database; whoever asks for the same key meanwhile gets the same answer."""
        asking = self._asking.get(prefix)
        if asking is None:
            asking = asyncio.ensure_future(self._room.run(self._keys.get, prefix))
            self._asking[prefix] = asking
            asking.add_done_callback(lambda _: self._asking.pop(prefix, None))
        return await asyncio.shield(asking)

    def _identity(self, row: KeyRow) -> Identity:
        return Identity(
            id=f"key:{row.prefix}",
            owner=f"key:{row.name}",
            name=row.name,
            scopes=frozenset(scope for scope in SCOPES if scope in row.scopes),
            rate=row.rate or self._rate,
            gpu_seconds=self._gpu_seconds if row.gpu_seconds is None else row.gpu_seconds,
        )

    def _note_use(self, row: KeyRow) -> None:
        """Write down, aside and now and then, that the key is in use."""
        if row.ended(now()) is not None or (row.used_at is not None and _age_s(row.used_at) < _USED_S):
            return

        async def note() -> None:
            try:
                await self._room.run(self._keys.used, row.prefix)
            except (SQLAlchemyError, Problem):
                _log.warning("the use of a key was not written down", exc_info=True, extra={"key": row.prefix})

        task = asyncio.ensure_future(note())
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)


def _age_s(at: str) -> float:
    return time.time() - datetime.fromisoformat(at).timestamp()


def _unknown() -> Refused:
    return Refused("unknown", "The API key is not known here.")
