"""Comparisons: one launch on several releases."""

from __future__ import annotations

from fastapi import APIRouter, Response

from service.examining import compare_releases
from service.routes._common import Nothing, answer, problems
from service.schemas.answers import ComparisonOut
from service.schemas.requests import ComparisonRequest
from service.wiring import Wired

router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"])


@router.post(
    "",
    summary="What an upgrade changes for one launch",
    responses={200: {"model": ComparisonOut}, **problems(400, 403, 404, 413, 415, 422, 503)},
)
async def compare(body: ComparisonRequest, _: Nothing, wired: Wired) -> Response:
    """The launch is written for the first of `releases`; each further one answers it rewritten, with what changed."""
    request = body.model_dump(exclude_unset=True)
    return answer(await wired.examining.run(compare_releases, wired, request))
