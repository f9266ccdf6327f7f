"""Idempotency keys: a request that is sent again with its key has its first answer again, and happens once.

The key's row in the database is the lock, whichever process of the API a request reaches. A key is bound to what it was
first sent with, for as long as it is remembered. Answers that will not last (5xx, 408, 429) are not kept: the next
request with the key tries again, and makes nothing that the first one has made already.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.handlers import store_problem
from service.problem_types import IDEMPOTENCY_IN_FLIGHT, IDEMPOTENCY_KEY, IDEMPOTENCY_REUSED
from service.problems import Problem, request_id, response_to
from service.reservation import Reserved
from service.security.identity import Identity
from service.store.idempotency import Busy, Found, Held, IdempotencyKeys, Kept
from service.workroom import Workroom

HEADER = b"idempotency-key"
ADDRESSES = frozenset({"/v1/validations", "/v1/validations/batch", "/v1/comparisons", "/v1/captures"})
"""Where a POST may carry a key; elsewhere it has no meaning and is passed over."""

_KEY = re.compile(rb"[\x21-\x7e]{1,255}")
_KEPT_HEADERS = frozenset({b"content-type", b"location"})
_LONGEST_RETRY_S = 5
_FLEETING = frozenset({408, 425, 429})
_log = logging.getLogger("graphgate.idempotency")


class Idempotency:
    """ASGI middleware; below access control, which says who asks, and below the limits, which read the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and scope["path"] in ADDRESSES
            and HEADER in dict(scope["headers"])  # one call: requests without a key shall not pay for those with one
        ):
            given = [value for name, value in scope["headers"] if name == HEADER]
            await self._once(given, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _once(self, given: list[bytes], scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        if first["type"] == "http.disconnect":
            return
        wired = scope["app"].state.services
        try:
            key = _key(given)
            call = _Call(wired.idempotency, wired.asking, scope["state"]["identity"], key, _fingerprint(scope, first))
            found = await call.take()
        except Problem as problem:
            await response_to(problem, scope)(scope, receive, send)
            return
        except SQLAlchemyError as error:
            await response_to(store_problem(scope, error), scope)(scope, receive, send)
            return
        if isinstance(found, Held):
            await self._answer(call, found, first, scope, receive, send)
        elif isinstance(found, Kept):
            await _replay(found, send)
        else:
            await response_to(_refusal(found, key), scope)(scope, receive, send)

    async def _answer(
        self, call: _Call, held: Held, first: Message, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have the request answered, and keep the answer before it is sent: whoever has it can ask for it again."""
        scope["state"]["reserved"] = Reserved(held.reserved, held.again)
        start: Message = {}
        parts: list[bytes] = []
        handed_on = False

        async def body() -> Message:
            nonlocal handed_on
            if handed_on:
                return await receive()
            handed_on = True
            return first

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        async with call.held(held, scope) as end:
            await self._app(scope, body, hold)
            if start["status"] < 500 and start["status"] not in _FLEETING:
                headers = tuple(
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in start["headers"]
                    if name in _KEPT_HEADERS
                )
                end.answer = Kept(start["status"], headers, b"".join(parts))
        await send(start)
        await send({"type": "http.response.body", "body": b"".join(parts)})


@dataclass(slots=True)
class _End:
    """How a request with a key ended; without an answer to keep, the key is let go."""

    answer: Kept | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """One request with a key."""

    keys: IdempotencyKeys
    room: Workroom
    by: Identity
    key: str
    fingerprint: str

    async def take(self) -> Found:
        return await self.room.run(self.keys.take, self.by.id, self.key, self.fingerprint)

    @contextlib.asynccontextmanager
    async def held(self, held: Held, scope: Scope) -> AsyncIterator[_End]:
        """Renew the lease for as long as the request is at work, and write down how it ended."""
        beating = asyncio.create_task(self._beat(held))
        end = _End()
        try:
            yield end
        finally:
            beating.cancel()
            write = (
                partial(self.keys.let_go, self.by.id, self.key, held.holder)
                if end.answer is None
                else partial(self.keys.keep, self.by.id, self.key, held.holder, end.answer)
            )
            try:
                await asyncio.shield(self.room.run(write))
            except (SQLAlchemyError, Problem):
                _log.exception("the end of a request with a key was not kept", extra={"request_id": request_id(scope)})

    async def _beat(self, held: Held) -> None:
        while True:
            await asyncio.sleep(self.keys.lease_s / 3)
            try:
                await self.room.run(self.keys.renew, self.by.id, self.key, held.holder)
            except (SQLAlchemyError, Problem):
                _log.warning("the lease of an idempotency key was not renewed", exc_info=True)


def _key(given: list[bytes]) -> str:
    key = given[0].strip()
    if len(given) == 1 and _KEY.fullmatch(key):
        return key.decode("ascii")
    raise Problem(
        IDEMPOTENCY_KEY,
        "The header Idempotency-Key must be there once, with 1 to 255 visible ASCII characters, such as a UUID.",
    )


def _fingerprint(scope: Scope, first: Message) -> str:
    """What the key stands for: method, address, query and body, byte for byte."""
    head = b"%s %s?%s\0" % (scope["method"].encode(), scope["path"].encode(), scope["query_string"])
    return hashlib.sha256(head + first.get("body", b"")).hexdigest()


async def _replay(kept: Kept, send: Send) -> None:
    headers: list[tuple[bytes, bytes]] = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in kept.headers]
    headers += [(b"content-length", b"%d" % len(kept.body)), (b"idempotency-replayed", b"true")]
    await send({"type": "http.response.start", "status": kept.status, "headers": headers})
    await send({"type": "http.response.body", "body": kept.body})


def _refusal(found: Any, key: str) -> Problem:
    if isinstance(found, Busy):
        wait = max(1, min(_LONGEST_RETRY_S, ceil(found.seconds)))
        return Problem(
            IDEMPOTENCY_IN_FLIGHT,
            f"The first request with the key {key[:60]!r} is still at work; repeat it in {wait} s for its answer.",
            headers={"Retry-After": str(wait)},
        )
    return Problem(
        IDEMPOTENCY_REUSED,
        f"The key {key[:60]!r} was sent before with another address, query or body. Send a new request with a new key.",
    )
