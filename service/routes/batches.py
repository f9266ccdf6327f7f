"""Many launches in one request."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.batching import ADDRESS, answer_batch
from service.routes._common import Nothing, answer, problems
from service.schemas.answers import BatchOut
from service.schemas.requests import BatchRequest
from service.security.trail import Asking
from service.wiring import Wired

router = APIRouter(prefix=ADDRESS, tags=["validations"])


@router.post(
    "",
    summary="The verdicts on many launches",
    responses={200: {"model": BatchOut}, **problems(400, 413, 415, 422)},
)
async def validate_many(body: BatchRequest, _: Nothing, by: Asking, wired: Wired) -> Response:
    """Each launch is answered in its place, by its verdict or by a problem; the verdicts are kept, all or none."""
    return answer(await answer_batch(wired, body.validations, by))
