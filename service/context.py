"""Around every request: an id, one line of log, and an answer even where the service itself is at fault."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.observation.metrics import Metrics
from service.observation.tracing import Tracing
from service.problem_types import INTERNAL
from service.problems import Problem, response_to

HEADER = b"x-request-id"
_GIVEN = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_QUIET = frozenset({"/livez", "/readyz", "/metrics"})
_log = logging.getLogger("graphgate.requests")


class RequestContext:
    """ASGI middleware, the outermost. The caller's X-Request-ID is taken over where it is a plain name."""

    def __init__(self, app: ASGIApp, metrics: Metrics, tracing: Tracing) -> None:
        self._app = app
        self._metrics = metrics
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        identity = given.decode("ascii") if _GIVEN.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = identity
        if self._tracing.on and scope["path"] not in _QUIET:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            with self._tracing.request(scope["method"], headers) as span:
                status = await self._answer(scope, receive, send, identity)
                span.update_name(f"{scope['method']} {_route(scope)}")
                span.set_attribute("http.route", _route(scope))
                span.set_attribute("http.response.status_code", status)
                span.set_attribute("graphgate.request_id", identity)
            return
        await self._answer(scope, receive, send, identity)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, identity: str) -> int:
        begun = time.perf_counter()
        status = 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *_headers(identity, message["headers"])]}
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
            seconds = time.perf_counter() - begun
            self._metrics.request(scope["method"], _route(scope), status, seconds)
            level = logging.DEBUG if scope["path"] in _QUIET and status < 400 else logging.INFO
            _log.log(
                level,
                "request",
                extra={
                    "request_id": identity,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round(seconds * 1000, 2),
                },
            )
        return status


def _route(scope: Scope) -> str:
    """The template of the address, so that an id in it makes no series of its own."""
    return str(getattr(scope.get("route"), "path", "unmatched"))


def _headers(identity: str, own: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What every answer has beside its ``own`` headers. What does not say that it may be kept may not be."""
    added = [(HEADER, identity.encode("ascii")), (b"x-content-type-options", b"nosniff")]
    if not any(name == b"cache-control" for name, _ in own):
        added.append((b"cache-control", b"no-store"))
    return added
