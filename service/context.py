"""Around every request: an id, one line of log, and an answer even where the service itself is at fault."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problem_types import INTERNAL
from service.problems import Problem, response_to

HEADER = b"x-request-id"
_GIVEN = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_QUIET = frozenset({"/livez", "/readyz"})
_log = logging.getLogger("graphgate.requests")


class RequestContext:
    """ASGI middleware, the outermost. The caller's X-Request-ID is taken over where it is a plain name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        identity = given.decode("ascii") if _GIVEN.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = identity
        begun = time.perf_counter()
        status = 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *_headers(identity)]}
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        except Exception:
            _log.exception("unexpected error", extra={"request_id": identity, "path": scope["path"]})
            if status:
                raise
            problem = Problem(INTERNAL, "The service failed on this request; its log has the details.")
            await response_to(problem, scope)(scope, receive, tagged)
        finally:
            level = logging.DEBUG if scope["path"] in _QUIET and status < 400 else logging.INFO
            _log.log(
                level,
                "request",
                extra={
                    "request_id": identity,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round((time.perf_counter() - begun) * 1000, 2),
                },
            )


def _headers(identity: str) -> list[tuple[bytes, bytes]]:
    return [
        (HEADER, identity.encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]
