"""What several routes say in the same way."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from starlette.responses import Response as PlainResponse

from service import jsontext
from service.problem_types import INVALID_REQUEST, NOT_FOUND
from service.problems import FieldError, Problem
from service.schemas.answers import ProblemOut
from service.schemas.queries import NoQuery
from service.security.identity import Identity
from service.wiring import Services

Responses = dict[int | str, dict[str, Any]]
Nothing = Annotated[NoQuery, Query()]

_ANYWHERE = (401, 403, 429, 500, 503)

_ID = re.compile(r"(?:val|cap|aud)_[0-9a-f]{28}")


def problems(*statuses: int) -> Responses:
    """The OpenAPI entries of these problem statuses."""
    return {
        status: {"model": ProblemOut, "description": "A problem (RFC 9457)"}
        for status in sorted({*statuses, *_ANYWHERE})
    }


def answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> PlainResponse:
    """A JSON response; bytes are JSON already."""
    body = value if isinstance(value, bytes) else jsontext.dumps(value)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def known_id(identity: str, prefix: str, what: str) -> str:
    """The id, where it has the form of one."""
    if not identity.startswith(f"{prefix}_") or not _ID.fullmatch(identity):
        raise missing(identity, what)
    return identity


async def visible(identity: str, prefix: Literal["val", "cap"], what: str, by: Identity, wired: Services) -> str:
    """The id, where it has the form of one and the caller may see what has it; somebody else's is as good as none."""
    known = known_id(identity, prefix, what)
    if by.only is not None and not by.sees(await wired.asking.run(wired.owners.of, prefix, known)):
        raise missing(identity, what)
    return known


def missing(identity: str, what: str) -> Problem:
    """The problem that nothing has this id."""
    return Problem(NOT_FOUND, f"No {what} has the id {jsontext.shown(identity)}.")


def before(cursor: str | None, prefix: str) -> str | None:
    """The id that a page's cursor stands for."""
    if cursor is None:
        return None
    if not cursor.startswith(f"{prefix}_") or not _ID.fullmatch(cursor):
        problem = FieldError(("cursor",), "This is no cursor.", "Use next_cursor of the page before, or leave it out.")
        raise Problem(INVALID_REQUEST, f"cursor: {problem.detail} {problem.suggestion}", errors=[problem])
    return cursor


def page(items: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """One page out of ``limit + 1`` items that were asked for."""
    shown = items[:limit]
    return {"items": shown, "next_cursor": shown[-1]["id"] if len(items) > limit else None}
