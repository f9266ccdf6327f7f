"""Rows for tests of the store."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from sqlalchemy import update

from service.store.captures import Captures
from service.store.database import Database, first_id_at, time_of
from service.store.queue import CaptureQueue
from service.store.tables import captures
from service.store.validations import ValidationRow, Validations


def answered(
    database: Database,
    *,
    at: datetime | None = None,
    rules: tuple[str, ...] = (),
    model: str = "a/b",
    verdict: str = "accepted",
    release: str = "0.5.23",
    gpu: str = "H200",
) -> str:
    """A kept validation that was answered at that moment; its id."""
    identity = first_id_at("val", at or datetime.now(UTC)) + secrets.token_hex(8)
    Validations(database).add(
        ValidationRow(
            id=identity,
            created_at=time_of(identity),
            verdict=verdict,
            summary="",
            model=model,
            release=release,
            gpu=gpu,
            rules=rules,
            body="{}",
        )
    )
    return identity


def captured(database: Database, validation: str, *, ended: str | None = None, at: datetime | None = None) -> str:
    """A capture of that validation, accepted at that moment, that ended at ``ended`` or still waits; its id."""
    identity = first_id_at("cap", at or datetime.now(UTC)) + secrets.token_hex(8)
    Captures(database).add(identity=identity, validation_id=validation, options={}, job="{}", queue=1000)
    if ended is not None:
        queue = CaptureQueue(database, "worker", lease_s=60, attempts=3)
        claim = queue.claim(identity)
        assert claim is not None
        assert queue.finish(claim, "succeeded", report={}, reason=None)
        with database.write() as connection:
            connection.execute(update(captures).where(captures.c.id == identity).values(finished_at=ended))
    return identity
