"""Answers are kept many at a time: those that arrive while one transaction is being written share the next one.

Whoever hands an answer in waits until it is committed, so that nothing is sent that could be lost.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence

from sqlalchemy.exc import DBAPIError, OperationalError

from service.store.validations import ValidationRow, Validations

_MOST = 256
"""Rows of one transaction."""

_log = logging.getLogger("graphgate.keeper")
_Handed = tuple[ValidationRow, "asyncio.Future[None]"]


class KeeperFull(Exception):
    """As many answers wait to be kept as may wait."""


class Keeper:
    """One thread that writes, for the event loop that it was made in; at most ``waiting`` answers wait for it."""

    def __init__(self, validations: Validations, *, waiting: int) -> None:
        self._validations = validations
        self._waiting = waiting
        self._loop = asyncio.get_running_loop()
        self._next: list[_Handed] = []
        self._writing = False
        self._batches: queue.SimpleQueue[list[_Handed] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
        self._thread.start()

    async def keep(self, row: ValidationRow) -> None:
        """Return when the answer is committed.

        Raises:
            KeeperFull: too many wait already.
            SQLAlchemyError: it could not be kept.
        """
        if len(self._next) >= self._waiting:
            raise KeeperFull
        kept = self._loop.create_future()
        self._next.append((row, kept))
        if not self._writing:
            self._writing = True
            self._loop.call_soon(self._hand_over)  # after what else is ready now: it may hand in answers too
        await kept

    def close(self) -> None:
        """End the thread when it has written what it has. Called when no request is at work any more."""
        self._batches.put(None)
        self._thread.join()

    def _hand_over(self) -> None:
        batch, self._next = self._next[:_MOST], self._next[_MOST:]
        self._batches.put(batch)

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            errors = self._write([row for row, _ in batch])
            self._loop.call_soon_threadsafe(self._written, batch, errors)

    def _written(self, batch: Sequence[_Handed], errors: Sequence[Exception | None]) -> None:
        for (_, kept), error in zip(batch, errors, strict=True):
            if kept.done():  # its request was cancelled
                continue
            if error is None:
                kept.set_result(None)
            else:
                kept.set_exception(error)
        self._writing = bool(self._next)
        if self._writing:
            self._hand_over()

    def _write(self, rows: Sequence[ValidationRow]) -> list[Exception | None]:
        """Write them together; where one row spoils that, each by itself. What went wrong with each."""
        try:
            self._validations.add_all(rows)
        except Exception as error:
            if not isinstance(error, DBAPIError) or isinstance(error, OperationalError) or len(rows) == 1:
                return [error] * len(rows)
            _log.warning("answers could not be kept together", exc_info=True)
            return [self._write([row])[0] for row in rows]
        return [None] * len(rows)
