"""The way of most requests, ``POST /v1/validations`` without a query: from the parsed body to the answer, past the
framework, whose routing and dependencies would take as long as the examination itself.

What is not quite as it should be takes the framework's way, and has its errors: the route in
:mod:`service.routes.validations` answers the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import QuestionError
from engine.launch import Launch
from engine.launch_forms import launch_from_request
from service.answering import SMALL, answer_one
from service.handlers import store_problem
from service.limits import PARSED, Parsed
from service.problems import Problem, from_question, response_to
from service.schemas.requests import ValidationRequest
from service.security.trail import asker_of

_PATH = "/v1/validations"


@dataclass(frozen=True, slots=True)
class _Route:
    """What metrics and traces name a request by."""

    path: str = _PATH


_ROUTE = _Route()


@dataclass(frozen=True, slots=True)
class _Read:
    """A valid request, and the launch that it describes; None: it is too large to find that out here."""

    request: Mapping[str, Any]
    launch: Launch | None


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
            read = None if parsed is None else _read(parsed)
        except ValidationError:
            read = None
        except QuestionError as error:
            scope["route"] = _ROUTE
            await response_to(from_question(error), scope)(scope, receive, send)
            return
        if read is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTE
        wired = scope["app"].state.services
        try:
            answered = await answer_one(wired, read.request, asker_of(scope), read.launch)
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


def _read(parsed: Parsed) -> _Read:
    if len(parsed.body) > SMALL:
        return _Read(_valid(parsed.value), None)
    return _read_small(parsed.body)


@lru_cache(maxsize=512)
def _read_small(body: bytes) -> _Read:
    """Requests come again and again, to the byte."""
    request = _valid(json.loads(body))
    return _Read(request, launch_from_request(request))


def _valid(value: Any) -> Mapping[str, Any]:
    return ValidationRequest.model_validate(value).model_dump(exclude_unset=True)
