"""Access control: who asks, whether they may, and how often. Before anything of the request's body is read."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.handlers import store_problem
from service.observation.metrics import Metrics
from service.problem_types import (
    IDENTITY_PROVIDER,
    INSUFFICIENT_SCOPE,
    NOT_LOCAL,
    RATE_LIMITED,
    TOO_MANY_FAILURES,
    UNAUTHENTICATED,
)
from service.problems import Problem, request_id, response_to
from service.security.credentials import credential
from service.security.identity import EVERYBODY, NOBODY, Identity
from service.security.keyring import Keyring
from service.security.mode import is_loopback_address
from service.security.oidc import Oidc, ProviderUnavailable
from service.security.rates import Rates, Window
from service.security.refusal import Refused
from service.security.scopes import OPEN, Needed, ScopeTable
from service.security.trail import Trail, address_of
from service.store.audit import AuditEntry
from service.workroom import Workroom

_KEPT_DENIALS = "600/minute"
"""Refusals that are kept as rows; of more than these only the log tells."""

_log = logging.getLogger("graphgate.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What access control works with. ``failures``: how often one address may fail to say who it is."""

    keyring: Keyring
    oidc: Oidc | None
    rates: Rates
    trail: Trail
    room: Workroom
    metrics: Metrics
    failures: str

    async def identify(self, scope: Scope) -> Identity:
        """Who asks.

        Raises:
            Problem: they do not say, or not so that it is taken; or they failed too often.
        """
        try:
            text = credential(scope)
            remembered = self.keyring.remembered(text)
            if remembered is not None:
                return remembered
            if not self.keyring.knows(text):
                self._check(await self.rates.take(self.failures, f"failed:{_network(address_of(scope))}", cost=0))
            if self.oidc is not None and not text.startswith("gg_"):
                return await self.oidc.identity(text)
            return await self.keyring.identity(text)
        except ProviderUnavailable as error:
            _log.error("%s", error, extra={"request_id": request_id(scope)})
            raise Problem(IDENTITY_PROVIDER, str(error), headers={"Retry-After": "10"}) from None
        except SQLAlchemyError as error:
            raise store_problem(scope, error) from None
        except Refused as refused:
            self.metrics.refused("unauthenticated")
            self._check(await self.rates.take(self.failures, f"failed:{_network(address_of(scope))}"))
            await self._denied(scope, refused.actor or "unknown", f"{refused.reason}: {refused.detail}")
            raise _unauthenticated(refused) from None

    async def permit(self, scope: Scope, identity: Identity, needed: Needed | None) -> Window | None:
        """Make sure that they may, and not too often; what their rate says, where they have one.

        Raises:
            Problem: they may not.
        """
        if needed not in (None, OPEN) and not identity.may(needed):
            await self._denied(scope, identity.id, f"needs the scope {needed}")
            self.metrics.refused("forbidden")
            raise Problem(
                INSUFFICIENT_SCOPE,
                f"{scope['method']} {scope['path'][:200]} needs the scope {needed}; {identity.name} has "
                f"{', '.join(sorted(identity.scopes)) or 'none'}.",
                headers={"WWW-Authenticate": f'Bearer realm="graphgate", error="insufficient_scope", scope="{needed}"'},
                extra={"needed_scope": needed},
            )
        if identity.rate is None:
            return None
        window = await self.rates.take(identity.rate, f"rate:{identity.id}")
        if not window.allowed:
            self.metrics.refused("rate")
            raise Problem(
                RATE_LIMITED,
                f"{identity.name} may send {window.quota} requests in {window.window_s} s; "
                f"there is room for one more in {window.reset_s} s.",
                headers={**window.headers, "Retry-After": str(window.reset_s)},
            )
        return window

    def _check(self, window: Window) -> None:
        if not window.allowed:
            raise Problem(
                TOO_MANY_FAILURES,
                "Too many requests from this address carried no credential that is taken; later ones are not looked at "
                f"for {window.reset_s} s.",
                headers={"Retry-After": str(window.reset_s)},
            )

    async def _denied(self, scope: Scope, actor: str, why: str) -> None:
        entry = AuditEntry(
            actor=actor,
            action="access",
            object="".join(c if c.isprintable() else "?" for c in f"{scope['method']} {scope['path']}"[:160]),
            outcome="denied",
            request_id=request_id(scope),
            address=address_of(scope),
            detail=why,
        )
        keep = (await self.rates.take(_KEPT_DENIALS, "denials")).allowed
        await self.room.run(self.trail.record, entry, keep=keep)


class Access:
    """ASGI middleware. ``on``: callers have to say who they are; otherwise everybody may do everything, and where it
    is ``local`` under a loopback name alone."""

    def __init__(self, app: ASGIApp, table: ScopeTable, *, on: bool, local: bool = False) -> None:
        self._app = app
        self._table = table
        self._on = on
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        if not self._on:
            if self._local and not _is_local(next((value for name, value in scope["headers"] if name == b"host"), b"")):
                problem = Problem(NOT_LOCAL, "This service answers on the loopback interface, under its names alone.")
                await response_to(problem, scope)(scope, receive, send)
                return
            state["identity"] = EVERYBODY
            await self._app(scope, receive, send)
            return
        needed = self._table.needed(scope)
        if needed is None or needed == OPEN:
            state["identity"] = NOBODY
            await self._app(scope, receive, send)
            return
        guard: Guard = scope["app"].state.services.guard
        try:
            identity = await guard.identify(scope)
            window = await guard.permit(scope, identity, needed)
        except Problem as problem:
            await response_to(problem, scope)(scope, receive, send)
            return
        state["identity"] = identity
        await self._app(scope, receive, send if window is None else _with_headers(send, window.headers))


@lru_cache(maxsize=64)
def _is_local(host: bytes) -> bool:
    """Whether the header names this machine by a loopback address or as localhost. Names are not looked up: who owns
    one decides what it means."""
    try:
        name = urlsplit(f"//{host.decode('ascii')}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback_address(name)


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    encoded = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]

    async def tagged(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *encoded]}
        await send(message)

    return tagged


def _network(address: str | None) -> str:
    """The address, or the /64 that an IPv6 client may pick its addresses from."""
    try:
        found: Any = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def _unauthenticated(refused: Refused) -> Problem:
    error = "" if refused.reason == "missing" else ', error="invalid_token"'
    return Problem(UNAUTHENTICATED, refused.detail, headers={"WWW-Authenticate": f'Bearer realm="graphgate"{error}'})
