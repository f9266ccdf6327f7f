"""Errors as problem details (RFC 9457): how they are raised, and how every one is written.

A problem holds ``type``, ``title``, ``status``, ``detail``, ``instance``, ``request_id``, ``errors`` (each with a JSON
pointer into the request, what is wrong, and a suggestion), and members of its own kind such as ``validation``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Scope

from engine.errors import HubRateLimited, QuestionError
from service import jsontext
from service.problem_types import ProblemType, for_question

MEDIA_TYPE = "application/problem+json"
_TEMPORARY = frozenset({429, 503})
_RETRY_S = "5"
"""Seconds after which to repeat a request where nobody knows better."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: ``path`` are the names and indexes that lead to it from the body's or query's root."""

    path: tuple[str | int, ...]
    detail: str
    suggestion: str = ""

    def to_dict(self) -> dict[str, Any]:
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)
        return {
            "pointer": "#" + quote(pointer, safe="/~"),
            "field": ".".join(map(str, self.path)),
            "detail": self.detail,
            "suggestion": self.suggestion or None,
        }


class Problem(Exception):
    """Answer the request with this problem."""

    def __init__(
        self,
        kind: ProblemType,
        detail: str,
        *,
        status: int | None = None,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.status = status or kind.status
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


def from_question(error: QuestionError) -> Problem:
    """The problem that one of the domain's errors is over HTTP."""
    path = tuple(error.field.split(".")) if error.field else ()
    headers = {}
    if error.status == 503:
        retry_after = error.retry_after if isinstance(error, HubRateLimited) else None
        headers["Retry-After"] = str(retry_after or 30)
    detail = f"{error.detail} {error.remedy}".strip()
    return Problem(
        for_question(type(error)),
        detail,
        errors=[FieldError(path, error.detail, error.remedy)] if path or error.remedy else (),
        headers=headers,
    )


def response_to(problem: Problem, scope: Scope) -> Response:
    """The response that tells of the problem."""
    instance = quote(scope.get("path", ""), safe="/:@-._~")
    body = details(problem, instance=instance, request_id=request_id(scope))
    headers = problem.headers
    if problem.status in _TEMPORARY:
        headers = {"Retry-After": _RETRY_S, **headers}
    return Response(jsontext.dumps(body), status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)


def details(problem: Problem, *, instance: str, request_id: str | None) -> dict[str, Any]:
    """The members of the problem's JSON. ``instance`` is the address that it stands for."""
    return {
        "type": problem.kind.uri,
        "title": problem.kind.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "request_id": request_id,
        "errors": [error.to_dict() for error in problem.errors],
        **problem.extra,
    }


def request_id(scope: Scope) -> str | None:
    """The id of the request, once the outermost middleware has given it one."""
    found = scope.get("state", {}).get("request_id")
    return found if isinstance(found, str) else None
