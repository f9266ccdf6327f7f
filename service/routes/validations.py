"""Validations: one launch in, one verdict out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from engine.launch_forms import launch_from_request
from service.answering import SMALL, answer_one
from service.conditional import unchanging
from service.routes._common import Nothing, answer, before, missing, page, problems, visible
from service.schemas.answers import ValidationOut, ValidationsPage
from service.schemas.queries import ValidateQuery, ValidationsQuery
from service.schemas.requests import ValidationRequest
from service.security.identity import Caller
from service.security.trail import Asking
from service.wiring import Wired

router = APIRouter(prefix="/v1/validations", tags=["validations"])


@router.post(
    "",
    summary="The verdict on one launch",
    responses={200: {"model": ValidationOut}, **problems(400, 403, 404, 413, 415, 422, 503)},
)
async def validate(
    body: ValidationRequest, query: Annotated[ValidateQuery, Query()], by: Asking, wired: Wired, request: Request
) -> Response:
    """Answers 200 whatever the verdict is; with `strict=true` a rejected launch answers 422, for `curl --fail`."""
    asked = body.model_dump(exclude_unset=True)
    launch = launch_from_request(asked) if len(await request.body()) <= SMALL else None
    answered = await answer_one(wired, asked, by, launch)
    if query.strict and answered.rejected:
        raise answered.problem(422, "")
    return answer(answered.body)


@router.get(
    "", summary="Answered validations, newest first", responses={200: {"model": ValidationsPage}, **problems(422, 503)}
)
async def recent(query: Annotated[ValidationsQuery, Query()], by: Caller, wired: Wired) -> Response:
    """The caller's own (with the scope admin: all), in short, page by page."""
    items = await wired.asking.run(
        wired.validations.page, query.filter(by.only), limit=query.limit + 1, before=before(query.cursor, "val")
    )
    return answer(page(items, query.limit))


@router.get(
    "/{id}", summary="One answered validation", responses={200: {"model": ValidationOut}, **problems(404, 422, 503)}
)
async def one(id: str, _: Nothing, by: Caller, wired: Wired, request: Request) -> Response:  # noqa: A002 - the name in the address
    """The answer as it was given."""
    body = await wired.asking.run(wired.validations.body, await visible(id, "val", "validation", by, wired))
    if body is None:
        raise missing(id, "validation")
    return unchanging(request, body.encode(), tag=f'"{id}"')
