"""The way of most requests, ``POST /v1/validations`` without a query: from the parsed body to the answer, past the
framework, whose routing and dependencies would take as long as the examination itself.

What is not quite as it should be takes the framework's way, and has its errors: the route in
:mod:`service.routes.validations` answers the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import QuestionError
from service.answering import answer_one
from service.handlers import store_problem
from service.limits import PARSED
from service.problems import Problem, from_question, response_to
from service.schemas.requests import ValidationRequest
from service.security.trail import asker_of

_PATH = "/v1/validations"


@dataclass(frozen=True, slots=True)
class _Route:
    """What metrics and traces name a request by."""

    path: str = _PATH


_ROUTE = _Route()


class Shortcut:
    """ASGI middleware, the innermost: below access control, limits and idempotency."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != _PATH or scope["method"] != "POST" or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        parsed = scope["state"].get(PARSED)
        try:
            request = None if parsed is None else ValidationRequest.model_validate(parsed.value)
        except ValidationError:
            request = None
        if parsed is None or request is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        wired = scope["app"].state.services
        try:
            answered = await answer_one(
                wired, request.model_dump(exclude_unset=True), asker_of(scope), size=parsed.size
            )
        except Problem as problem:
            await response_to(problem, scope)(scope, receive, send)
        except QuestionError as error:
            await response_to(from_question(error), scope)(scope, receive, send)
        except SQLAlchemyError as error:
            await response_to(store_problem(scope, error), scope)(scope, receive, send)
        else:
            body = answered.body
            headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
