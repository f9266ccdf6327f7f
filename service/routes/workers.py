"""The capture workers that there are."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.routes._common import Nothing, answer, problems
from service.schemas.answers import WorkersOut
from service.wiring import Wired

router = APIRouter(prefix="/v1/workers", tags=["captures"])


@router.get("", summary="The capture workers", responses={200: {"model": WorkersOut}, **problems(422, 503)})
async def workers(_: Nothing, wired: Wired) -> Response:
    """What each can run, what it runs now, and when it last gave a sign of life."""
    return answer({"items": await wired.asking.run(wired.fleet.workers.all)})
