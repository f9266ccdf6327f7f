"""In the background of the API processes, in one at a time: what is older than the settings say is taken out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import anyio.to_thread

from engine.capture.supervisor import Supervisor
from service.settings import Settings
from service.store.audit import Audit
from service.store.database import Database
from service.store.fleet import Lease
from service.store.quotas import Quotas
from service.store.retention import Pruned, prune

_log = logging.getLogger("graphgate.retention")
_LONGEST_S = 3600.0
_SHORTEST_S = 1.0
_BETWEEN_S = 0.05
"""Between two batches: others have the database for most of the time."""


class Retention:
    """``settings.retention_days`` is how long validations and ended captures are kept; 0: for ever."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._kept = timedelta(days=settings.retention_days)
        self._audit_kept = timedelta(days=settings.audit_days)
        self._every_s = min(_LONGEST_S, max(_SHORTEST_S, (self._kept or self._audit_kept).total_seconds() / 24))
        name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._lease = Lease(database, "retention", name, for_s=60.0)
        self._folders = Supervisor(settings.data / "captures")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It runs while the block runs."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except Exception:
                _log.exception("old entries could not be taken out; it is tried again later")
            await asyncio.sleep(self._every_s)

    async def _round(self) -> None:
        found = [0, 0]
        while (done := await anyio.to_thread.run_sync(self._batch)).any:
            found[0] += done.captures
            found[1] += done.validations
            await asyncio.sleep(_BETWEEN_S)
        if any(found):
            _log.info("old entries taken out", extra={"captures": found[0], "validations": found[1]})
        await anyio.to_thread.run_sync(self._folders.sweep)
        await anyio.to_thread.run_sync(self._forget)

    def _forget(self) -> None:
        """Audit entries, and the days of GPU seconds that they tell of, have a time of their own."""
        if self._lease.take():
            before = (datetime.now(UTC) - self._audit_kept).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            Audit(self._database).forget(before)
            Quotas(self._database).forget(before[:10])

    def _batch(self) -> Pruned:
        if not self._kept or not self._lease.take():
            return Pruned(0, 0)
        return prune(self._database, datetime.now(UTC) - self._kept)
