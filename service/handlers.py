"""Every error, the framework's and the database's too, becomes a problem."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from engine.errors import QuestionError
from service.methods import AllowedMethods
from service.problem_types import INVALID_REQUEST, METHOD_NOT_ALLOWED, NOT_FOUND, OTHER, STORE_UNAVAILABLE
from service.problems import FieldError, Problem, from_question, request_id, response_to
from service.wording import field_error

_log = logging.getLogger("graphgate.handlers")
_SHOWN = 20


def install(app: FastAPI, allowed: AllowedMethods) -> None:
    """Register the handlers."""

    def on(kind: type[Exception], make: Callable[[Request, Exception], Problem]) -> None:
        async def handle(request: Request, error: Exception) -> Response:
            return response_to(make(request, error), request.scope)

        handler: Callable[[Request, Exception], Awaitable[Response]] = handle
        app.add_exception_handler(kind, handler)

    def framework(request: Request, error: Exception) -> Problem:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type alone
        return _http(request, error, allowed)

    on(Problem, lambda _, error: error if isinstance(error, Problem) else Problem(OTHER, str(error)))
    on(QuestionError, lambda _, error: _question(error))
    on(RequestValidationError, _invalid)
    on(HTTPException, framework)
    on(SQLAlchemyError, lambda request, error: store_problem(request.scope, error))


def _question(error: Exception) -> Problem:
    if not isinstance(error, QuestionError):
        raise error
    return from_question(error)


def _invalid(request: Request, error: Exception) -> Problem:
    if not isinstance(error, RequestValidationError):
        raise error
    accepted = [
        parameter["name"] for parameter in _operation(request).get("parameters", []) if parameter["in"] == "query"
    ]
    return invalid([field_error(one, accepted) for one in error.errors()])


def invalid(found: Sequence[FieldError]) -> Problem:
    """The problem that these fields are, at least one."""
    first = found[0]
    where = f"{'.'.join(map(str, first.path))}: " if first.path else ""
    more = f" ({len(found)} fields are wrong; errors lists them.)" if len(found) > 1 else ""
    return Problem(INVALID_REQUEST, f"{where}{first.detail} {first.suggestion}".strip() + more, errors=found[:_SHOWN])


def _operation(request: Request) -> dict[str, list[dict[str, str]]]:
    """The OpenAPI operation that the request reached."""
    app: FastAPI = request.app
    path = getattr(request.scope.get("route"), "path", "")
    found: dict[str, list[dict[str, str]]] = app.openapi()["paths"].get(path, {}).get(request.method.lower(), {})
    return found


def _http(request: Request, error: HTTPException, allowed: AllowedMethods) -> Problem:
    path = request.url.path
    methods = allowed.of(request.scope["path"])
    if error.status_code == 405 or (error.status_code == 404 and methods and request.method not in methods):
        return Problem(
            METHOD_NOT_ALLOWED,
            f"{request.method} is not for this address; it takes {', '.join(methods)}.",
            headers={"Allow": ", ".join(methods)},
        )
    if error.status_code == 404:
        return Problem(NOT_FOUND, f"Nothing is at {path[:200]}; /v1/openapi.json lists the addresses.")
    return Problem(OTHER, str(error.detail), status=error.status_code, headers=dict(error.headers or {}))


def store_problem(scope: Scope, error: Exception) -> Problem:
    """The problem that a failed database is; the log has the error itself."""
    _log.error("the database failed", exc_info=error, extra={"request_id": request_id(scope), "path": scope["path"]})
    return Problem(
        STORE_UNAVAILABLE,
        "The database cannot be used at the moment; nothing was kept. Repeat the request.",
        headers={"Retry-After": "5"},
    )
