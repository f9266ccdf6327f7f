"""HEAD for every GET, OPTIONS for every address, and what ``Allow`` says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("get", "post", "put", "patch", "delete")


class AllowedMethods:
    """Which methods an address takes, as the OpenAPI document says; ``document`` is asked once, at the first use."""

    def __init__(self, document: Callable[[], Mapping[str, Any]], further: Mapping[str, tuple[str, ...]]) -> None:
        self._document = document
        self._further = further

    @cached_property
    def _plain(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = dict(self._further)
        for path, operations in self._document()["paths"].items():
            found[path] = tuple(method.upper() for method in _METHODS if method in operations)
        return found

    @cached_property
    def _table(self) -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
        table = []
        for path, methods in self._plain.items():
            parts = re.split(r"(\{[^}]*\})", path)
            pattern = "".join("[^/]+" if part.startswith("{") else re.escape(part) for part in parts)
            table.append((re.compile(pattern), methods))
        return table

    def of(self, path: str) -> tuple[str, ...]:
        """The methods, HEAD and OPTIONS included; empty where nothing has the address."""
        plain = self._plain.get(path)
        found = set(plain or ())
        if plain is None:
            found = {method for pattern, methods in self._table if pattern.fullmatch(path) for method in methods}
        if not found:
            return ()
        if "GET" in found:
            found.add("HEAD")
        return tuple(sorted(found | {"OPTIONS"}))


class Methods:
    """ASGI middleware that answers OPTIONS itself, and HEAD as GET without the body."""

    def __init__(self, app: ASGIApp, allowed: AllowedMethods) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            methods = self._allowed.of(scope["path"])
            if methods:
                await Response(status_code=204, headers={"Allow": ", ".join(methods)})(scope, receive, send)
                return
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await _head(self._app, scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    ended = False

    async def without_body(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            await send(message)
        elif message["type"] == "http.response.body" and not ended:
            ended = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def until_ended() -> Message:
        """A stream that would go on is told that nobody listens any more."""
        return {"type": "http.disconnect"} if ended else await receive()

    await app({**scope, "method": "GET"}, until_ended, without_body)
