"""A capture's events as a server-sent stream, read from the database: any worker's, in any process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

from sqlalchemy.exc import SQLAlchemyError

from service import jsontext
from service.problem_types import OVERLOADED
from service.problems import Problem
from service.store.captures import ENDED
from service.wiring import Services

_FIRST_S = 0.25
_LONGEST_S = 1.0
_log = logging.getLogger("graphgate.streams")


class Streams:
    """How many streams are open, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = 0

    def check(self) -> None:
        """Make sure that one more may be opened.

        Raises:
            Problem: as many as may be are open.
        """
        if self._open >= self._limit:
            raise Problem(
                OVERLOADED,
                f"{self._limit} event streams are open already; ask for the capture itself now and then instead.",
                headers={"Retry-After": "10"},
            )

    async def of(self, capture: str, after: int, wired: Services) -> AsyncIterator[bytes]:
        """One stream, until the capture has ended, the service stops, or the client leaves."""
        self._open += 1
        try:
            async for piece in _pieces(capture, after, wired):
                yield piece
        except (SQLAlchemyError, Problem):
            _log.warning("a stream was ended early", exc_info=True, extra={"capture": capture})
        finally:
            self._open -= 1


async def _pieces(capture: str, after: int, wired: Services) -> AsyncIterator[bytes]:
    """A comment now and then keeps proxies awake; a client that comes back says what it has seen."""
    sent = time.monotonic()
    pause = _FIRST_S
    yield b"retry: 2000\n\n"
    while True:
        state, rows = await wired.asking.run(wired.captures.news, capture, after=after)
        for row in rows:
            after = row.seq
            data = jsontext.dumps({"at": row.at, "event": row.name, **row.data})
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (row.seq, row.name.encode(), data)
        if rows:
            sent, pause = time.monotonic(), _FIRST_S
        elif state is None or state in ENDED:
            yield b"event: end\ndata: %s\n\n" % jsontext.dumps({"state": state})
            return
        elif time.monotonic() - sent > wired.settings.stream_heartbeat_s:
            yield b": still here\n\n"
            sent = time.monotonic()
        if wired.stopping.is_set():
            return
        try:
            await asyncio.wait_for(wired.stopping.wait(), pause)
        except TimeoutError:
            pause = min(_LONGEST_S, pause * 1.25)
