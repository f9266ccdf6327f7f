"""Versions of the API's JSON: ``application/vnd.graphgate.v1+json`` is asked for, and answered, by name.

Without a name ``application/json`` means the same version 1. A version that is not there is refused: 406 where it is
the only thing that ``Accept`` takes, 415 where a body is declared as it.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import jsontext
from service.problem_types import NOT_ACCEPTABLE, UNSUPPORTED_MEDIA_TYPE
from service.problems import Problem, response_to

VERSION = 1
MEDIA_TYPE = f"application/vnd.graphgate.v{VERSION}+json"

_OURS = b"vnd.graphgate"
_VERSIONED = re.compile(r"application/vnd\.graphgate(?:\.v(\d+))?\+json")
_PLAIN = ("application/json", "application/*", "*/*")


class VersionedMedia:
    """ASGI middleware. A request that names no version passes at the cost of one look at its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = scope["headers"]
            last = dict(headers)
            named = _OURS in last.get(b"accept", b"").lower() or _OURS in last.get(b"content-type", b"").lower()
            if named or len(last) != len(headers):  # a header that is there twice is looked at whole
                await self._named(headers, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _named(self, headers: list[tuple[bytes, bytes]], scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_declared(_joined(headers, b"content-type"))
            by_name = _asks_for_ours(_joined(headers, b"accept"))
        except Problem as problem:
            await response_to(problem, scope)(scope, receive, send)
            return
        await self._app(scope, receive, _renamed(send) if by_name else send)


def _joined(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str:
    return ", ".join(value.decode("latin-1") for name, value in headers if name == wanted)


def _check_declared(declared: str) -> None:
    media = declared.partition(";")[0].strip().lower()
    found = _VERSIONED.fullmatch(media)
    if _OURS.decode() in media and (found is None or found[1] not in (None, str(VERSION))):
        raise Problem(
            UNSUPPORTED_MEDIA_TYPE,
            f"The Content-Type {jsontext.shown(media)} is not taken here; send application/json or {MEDIA_TYPE}.",
            headers={"Accept-Post": f"application/json, {MEDIA_TYPE}"},
        )


def _asks_for_ours(accept: str) -> bool:
    """Whether version 1 is to be answered by its name, rather than as plain JSON.

    Raises:
        Problem: only versions that are not there are asked for.
    """
    ours = plain = 0.0
    others = False
    for part in accept.split(","):
        media, _, parameters = part.partition(";")
        media, weight = media.strip().lower(), _weight(parameters)
        found = _VERSIONED.fullmatch(media)
        if found is not None and found[1] in (None, str(VERSION)):
            ours = max(ours, weight)
        elif media in _PLAIN:
            plain = max(plain, weight)
        elif media and _OURS.decode() not in media and weight:
            others = True  # such as text/event-stream: the addresses that have it answer so
    if ours or plain or others or _OURS.decode() not in accept.lower():
        return ours > 0 and ours >= plain
    raise Problem(
        NOT_ACCEPTABLE,
        f"Accept asks for {jsontext.shown(accept, 100)}; the one version here is {MEDIA_TYPE}, also known as "
        "application/json.",
    )


def _weight(parameters: str) -> float:
    """The value of ``q``; 1 where there is none, or none that can be read."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(1.0, max(0.0, float(value.strip())))
            except ValueError:
                return 1.0
    return 1.0


def _renamed(send: Send) -> Send:
    async def renamed(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = (b"content-type", MEDIA_TYPE.encode("ascii"))
            headers = [ours if _is_plain(*header) else header for header in message["headers"]]
            message = {**message, "headers": headers}
        await send(message)

    return renamed


def _is_plain(name: bytes, value: bytes) -> bool:
    return name.lower() == b"content-type" and value == b"application/json"
