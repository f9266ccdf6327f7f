"""The application: wires the parts, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import FastAPI

from engine.models.resolver import ModelResolver
from engine.modes import gate_at
from engine.version import VERSION
from service import handlers
from service.admission.reviewing import Admission
from service.context import RequestContext
from service.fleet.opening import Fleet
from service.idempotency import Idempotency
from service.jobs.brokered import source_by
from service.jobs.embedded import EmbeddedWorker
from service.jobs.worker import CaptureWorker
from service.judgements import Judgements
from service.limits import BodyLimits
from service.media import VersionedMedia
from service.methods import AllowedMethods, Methods
from service.observation.census import CensusCollector
from service.observation.metrics import Metrics
from service.observation.tracing import Tracing, open_tracing
from service.openapi import with_problems
from service.retention import Retention
from service.routes import (
    admission,
    audit,
    batches,
    captures,
    comparisons,
    health,
    metrics,
    problem_pages,
    reference,
    validations,
    workers,
)
from service.security.access import Access
from service.security.opening import open_guard, table_of
from service.settings import Settings
from service.shortcut import Shortcut
from service.store.captures import Captures
from service.store.idempotency import IdempotencyKeys
from service.store.keeper import Keeper
from service.store.opening import open_database
from service.store.owners import Owners
from service.store.quotas import Quotas
from service.store.validations import Validations
from service.streaming import Streams
from service.warmth import Warm
from service.warmup import collect_rarely, warm_up
from service.wiring import Services
from service.workroom import Workroom

ROUTERS = (
    validations.router,
    batches.router,
    comparisons.router,
    admission.router,
    captures.router,
    reference.router,
    workers.router,
    audit.router,
    health.router,
    metrics.router,
    problem_pages.router,
)
FURTHER = {"/problems": ("GET",), "/problems/{slug}": ("GET",), "/v1/openapi.json": ("GET",)}
"""Addresses that the OpenAPI document does not list."""


def create_app(settings: Settings, *, guarded: bool | None = None) -> FastAPI:
    """The ASGI application. Its database is opened, and its worker started, when the server starts it.

    ``guarded``: callers must say who they are; None: unless the settings say ``off``.

    Raises:
        TracingError: traces are asked for and cannot be sent.
    """
    counted = Metrics()
    tracing = open_tracing("graphgate")
    app = FastAPI(
        title="graphgate",
        version=VERSION,
        summary="Preflight checks for the CUDA-graph configuration of LLM serving engines",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=partial(_lifespan, settings=settings, counted=counted, tracing=tracing),
    )
    app.openapi = with_problems(app.openapi)  # type: ignore[method-assign] # the framework's documented way to change it
    for router in ROUTERS:
        app.include_router(router)
    allowed = AllowedMethods(app.openapi, FURTHER)
    handlers.install(app, allowed)
    app.add_middleware(Shortcut)
    app.add_middleware(Idempotency)
    app.add_middleware(BodyLimits, settings=settings)
    on = settings.access != "off" if guarded is None else guarded
    local = guarded is False and settings.access == "auto"
    app.add_middleware(Access, table=table_of(app, settings), on=on, local=local)
    app.add_middleware(Methods, allowed=allowed)
    app.add_middleware(VersionedMedia)
    app.add_middleware(RequestContext, metrics=counted, tracing=tracing)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI, settings: Settings, counted: Metrics, tracing: Tracing) -> AsyncIterator[None]:
    opening = partial(open_database, settings, connections=settings.threads + 8)
    database = await anyio.to_thread.run_sync(opening)
    open_source = source_by(settings)
    embedded = CaptureWorker(database, settings, open_source=open_source, metrics=counted, tracing=tracing)
    worker = EmbeddedWorker(embedded) if settings.runs_worker else None
    fleet = Fleet(database, settings)
    resolver = ModelResolver(settings.models(), on_call=counted.hub_call)
    counted.add(CensusCollector(database, silent_s=settings.capture_lease_s))
    await anyio.to_thread.run_sync(warm_up, resolver)
    collect_rarely()
    kept = Validations(database)
    keeper = Keeper(kept, waiting=settings.waiting + settings.threads)
    app.state.services = Services(
        settings=settings,
        database=database,
        validations=kept,
        captures=Captures(database),
        resolver=resolver,
        gate=gate_at("http", settings.policy),
        admission=Admission(
            settings=settings, resolver=resolver, gate=gate_at("admission", settings.policy), metrics=counted
        ),
        keeper=keeper,
        warm=Warm(),
        judgements=Judgements(),
        examining=Workroom(settings.threads, settings.waiting),
        asking=Workroom(8, settings.waiting),
        probing=CapacityLimiter(4),
        streams=Streams(settings.streams),
        worker=worker,
        fleet=fleet,
        metrics=counted,
        tracing=tracing,
        guard=open_guard(settings, database, counted),
        owners=Owners(database),
        quotas=Quotas(database),
        idempotency=IdempotencyKeys(
            database, lease_s=settings.idempotency_lease_s, kept_s=settings.idempotency_hours * 3600
        ),
    )
    if worker is not None:
        worker.start()
    fleet.start()
    try:
        async with Retention(database, settings).running():
            yield
    finally:
        await anyio.to_thread.run_sync(fleet.stop)
        if worker is not None:
            await anyio.to_thread.run_sync(worker.stop)
        await anyio.to_thread.run_sync(keeper.close)
        database.close()
        await anyio.to_thread.run_sync(tracing.close)
