"""Limits of a request's body, before anything else looks at it: its declared type, its size, its form as JSON."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import jsontext
from service.problem_types import BAD_JSON, TOO_COMPLEX, TOO_LARGE, TOO_SLOW, UNSUPPORTED_MEDIA_TYPE
from service.problems import Problem, response_to
from service.settings import Settings

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_LOOSE = (("model", "config"),)
"""Where NaN and Infinity are taken: real config.json files hold them."""


PARSED = "graphgate.parsed"
"""Where the body's value is left, in the request's state."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A body and its value."""

    value: Any
    body: bytes


class BodyLimits:
    """ASGI middleware: reads the body up to the limit, checks it, and hands it on whole."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self._app(scope, receive, send)
            return
        try:
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            self._check_declared(headers)
            body = await self._in_time(receive)
            if body is None:
                return
            if body:
                _check_type(headers)
                scope.setdefault("state", {})[PARSED] = Parsed(self._json(body), body)
        except Problem as problem:
            await response_to(problem, scope)(scope, receive, send)
            return

        handed_on = False

        async def whole() -> Message:
            nonlocal handed_on
            if handed_on:
                return await receive()
            handed_on = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, whole, send)

    def _check_declared(self, headers: dict[bytes, str]) -> None:
        declared = headers.get(b"content-length", "")
        if declared.isdigit() and int(declared) > self._settings.max_body_bytes:
            raise self._too_large(f"The body is declared to have {int(declared)} bytes")
        encoding = headers.get(b"content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Problem(
                UNSUPPORTED_MEDIA_TYPE,
                f"The body is encoded as {jsontext.shown(encoding)}; send it as it is, without a Content-Encoding.",
                headers={"Accept-Encoding": "identity"},
            )

    async def _in_time(self, receive: Receive) -> bytes | None:
        try:
            async with asyncio.timeout(self._settings.body_wait_s):
                return await self._read(receive)
        except TimeoutError:
            raise Problem(
                TOO_SLOW,
                f"The body did not arrive within {self._settings.body_wait_s:g} seconds.",
                headers={"Connection": "close"},
            ) from None

    async def _read(self, receive: Receive) -> bytes | None:
        """The body; None where the client left."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > self._settings.max_body_bytes:
                raise self._too_large("The body is larger")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self, what: str) -> Problem:
        return Problem(
            TOO_LARGE,
            f"{what}; at most {self._settings.max_body_bytes} bytes are taken. A launch needs a few kilobytes: "
            "name the model by its id instead of sending a large config.",
            headers={"Connection": "close"},
        )

    def _json(self, body: bytes) -> Any:
        settings = self._settings
        try:
            return jsontext.loads(body, depth=settings.max_json_depth, items=settings.max_json_items, loose=_LOOSE)
        except jsontext.JsonTooComplex as error:
            raise Problem(TOO_COMPLEX, str(error)) from None
        except jsontext.JsonError as error:
            raise Problem(BAD_JSON, str(error)) from None


def _check_type(headers: dict[bytes, str]) -> None:
    declared = headers.get(b"content-type", "")
    media, _, parameters = declared.partition(";")
    media = media.strip().lower()
    is_json = media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
    charset = parameters.lower().replace(" ", "").replace('"', "")
    if is_json and ("charset=" not in charset or "charset=utf-8" in charset or "charset=utf8" in charset):
        return
    said = jsontext.shown(declared) if declared else "nothing"
    raise Problem(
        UNSUPPORTED_MEDIA_TYPE,
        f"The Content-Type is {said}; send application/json in UTF-8 "
        "(curl: -H 'content-type: application/json', or --json).",
        headers={"Accept-Post": "application/json"},
    )
