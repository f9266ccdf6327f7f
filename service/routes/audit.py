"""Who changed what, for those who run the service; and what a caller may use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.routes._common import Nothing, answer, before, page, problems
from service.schemas.access import AuditPage, AuditQuery, QuotaOut
from service.security.identity import Caller
from service.security.quota import quota_of
from service.store.audit import Audit
from service.wiring import Wired

router = APIRouter(prefix="/v1", tags=["access"])


@router.get(
    "/audit", summary="Changes and refusals, newest first", responses={200: {"model": AuditPage}, **problems(422)}
)
async def audit(query: Annotated[AuditQuery, Query()], wired: Wired) -> Response:
    """Keys created and revoked, captures accepted and cancelled, access denied; page by page."""
    items = await wired.asking.run(
        Audit(wired.database).page,
        limit=query.limit + 1,
        before=before(query.cursor, "aud"),
        action=query.action,
        actor=query.actor,
        outcome=query.outcome,
    )
    return answer(page(items, query.limit))


@router.get("/quota", summary="What the caller may use", responses={200: {"model": QuotaOut}, **problems(422)})
async def quota(_: Nothing, by: Caller, wired: Wired) -> Response:
    """The caller's scopes and rate, and how many GPU seconds of today (UTC) are reserved or used."""
    return answer(await wired.asking.run(quota_of, wired.quotas, by))
