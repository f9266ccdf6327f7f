"""What the routes need, made once and found through the application's state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from engine.models.resolver import ModelResolver
from engine.modes import Gate
from service.admission.reviewing import Admission
from service.fleet.opening import Fleet
from service.jobs.embedded import EmbeddedWorker
from service.judgements import Judgements
from service.observation.metrics import Metrics
from service.observation.tracing import Tracing
from service.security.access import Guard
from service.settings import Settings
from service.store.captures import Captures
from service.store.database import Database
from service.store.idempotency import IdempotencyKeys
from service.store.keeper import Keeper
from service.store.owners import Owners
from service.store.quotas import Quotas
from service.store.validations import Validations
from service.warmth import Warm
from service.workroom import Workroom

if TYPE_CHECKING:
    from service.streaming import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that outlives a request. ``examining`` is for launches, ``asking`` for short looks at the database,
    ``probing`` for /readyz, which gives up on a look that hangs.
    """

    settings: Settings
    database: Database
    validations: Validations
    captures: Captures
    resolver: ModelResolver
    gate: Gate
    admission: Admission
    keeper: Keeper
    warm: Warm
    judgements: Judgements
    examining: Workroom
    asking: Workroom
    probing: CapacityLimiter
    streams: Streams
    worker: EmbeddedWorker | None
    fleet: Fleet
    metrics: Metrics
    tracing: Tracing
    guard: Guard
    owners: Owners
    quotas: Quotas
    idempotency: IdempotencyKeys
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """The process was told to end: it is not ready, streams end, and its worker begins no further capture."""
        self.stopping.set()
        if self.worker is not None:
            self.worker.tell()


async def services(request: Request) -> Services:
    """The services of the application that the request came to."""
    found = request.app.state.services
    if not isinstance(found, Services):
        raise TypeError("the application has not been started")
    return found


Wired = Annotated[Services, Depends(services)]
