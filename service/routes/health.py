"""Whether the process lives, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.readiness import checks, hub
from service.routes._common import answer
from service.schemas.answers import Alive, Ready
from service.wiring import Wired

router = APIRouter(tags=["health"])


@router.get("/livez", summary="The process answers", responses={200: {"model": Alive}})
async def livez() -> Response:
    """Asks nothing else, and waits for nothing."""
    return answer({"status": "ok"})


@router.get("/readyz", summary="The service can do its work", responses={200: {"model": Ready}, 503: {"model": Ready}})
async def readyz(wired: Wired) -> Response:
    """Asks the database for a read and for the write lock, and the embedded worker for a sign of life."""
    found = await checks(wired)
    good = all(text == "ok" for text in found.values())
    body = {"status": "ok" if good else "unready", "checks": found, "hub": hub(wired)}
    return answer(body) if good else answer(body, status=503, headers={"Retry-After": "2"})
