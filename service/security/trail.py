"""The audit trail: every change of state, and every refusal, as a row and as a line of log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope

from service.problems import request_id
from service.reservation import Reserved
from service.security.identity import EVERYBODY, Identity, identity_of
from service.store.audit import Audit, AuditEntry
from service.store.database import new_id

_log = logging.getLogger("graphgate.audit")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, by which request, from where; ``reserved`` is there where the request has an idempotency key."""

    identity: Identity
    request_id: str | None = None
    address: str | None = None
    reserved: Reserved | None = None

    def new_id(self, prefix: str) -> str:
        """The id for the one thing of this kind that the request makes: a new one, or the one that its idempotency
        key reserves."""
        return new_id(prefix) if self.reserved is None else self.reserved.id(prefix)

    def did(self, action: str, what: str | None, detail: str | None = None) -> AuditEntry:
        """The entry that says so."""
        return AuditEntry(
            actor=self.identity.id,
            action=action,
            object=what,
            request_id=self.request_id,
            address=self.address,
            detail=detail,
        )


SERVICE = Asker(EVERYBODY)
"""Where nobody in particular asks."""


def address_of(scope: Scope) -> str | None:
    """The client's address, as the server in front of the application knows it."""
    client = scope.get("client")
    return str(client[0])[:64] if client else None


def asker_of(scope: Scope) -> Asker:
    """Who asks."""
    reserved = scope["state"].get("reserved")
    return Asker(identity_of(scope), request_id(scope), address_of(scope), reserved)


async def asker(request: Request) -> Asker:
    """Who asks, for a route."""
    return asker_of(request.scope)


Asking = Annotated[Asker, Depends(asker)]
"""A route's parameter of this type is who asks."""


class Trail:
    """Writes entries down. What has happened is not undone because it could not be written: the log has it then."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def record(self, entry: AuditEntry, *, keep: bool = True) -> None:
        """The line, and the row where it is to be kept. Asks the database: not for the event loop's own thread."""
        tell(entry)
        if not keep:
            return
        try:
            self._audit.add(entry)
        except SQLAlchemyError:
            _log.exception("an audit entry could not be kept", extra={"audit": entry.to_dict()})


def tell(entry: AuditEntry) -> None:
    """The line of log alone."""
    _log.info("audit", extra={"audit": entry.to_dict()})
