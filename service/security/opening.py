"""Access control, made from the settings."""

from __future__ import annotations

from fastapi import FastAPI

from service.observation.metrics import Metrics
from service.security.access import Guard
from service.security.keyring import Keyring
from service.security.oidc import open_oidc
from service.security.rates import Rates
from service.security.scopes import ScopeTable
from service.security.trail import Trail
from service.settings import Settings
from service.store.audit import Audit
from service.store.database import Database
from service.store.keys import Keys
from service.workroom import Workroom

_THREADS = 4


def open_guard(settings: Settings, database: Database, metrics: Metrics) -> Guard:
    """What access control works with; it has threads of its own, so that work that is let in cannot shut it out.

    Raises:
        SettingsError: a setting cannot be used.
    """
    room = Workroom(_THREADS, settings.waiting)
    return Guard(
        keyring=Keyring(Keys(database), room, rate=settings.rate, gpu_seconds=settings.gpu_seconds),
        oidc=open_oidc(settings),
        rates=Rates(_limits_url(settings)),
        trail=Trail(Audit(database)),
        room=room,
        metrics=metrics,
        failures=settings.failures,
    )


def _limits_url(settings: Settings) -> str | None:
    """Where rates are counted: a Redis of their own, or the broker's; None: in this process."""
    if settings.limits_url is not None:
        return settings.limits_url.get_secret_value()
    broker = settings.broker_url.get_secret_value() if settings.broker_url else ""
    return broker if broker.startswith(("redis://", "rediss://")) else None


def table_of(app: FastAPI, settings: Settings) -> ScopeTable:
    """The scopes of the application's addresses."""
    return ScopeTable(app.router.routes, settings.opened)
