"""A capture's events as a server-sent stream, read from the database: any worker's, in any process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from service import jsontext
from service.store.captures import ENDED
from service.wiring import Services

_POLL_S = 0.25
_HEARTBEAT_S = 10.0


async def events_of(capture: str, after: int, wired: Services) -> AsyncIterator[bytes]:
    """The stream, until the capture has ended or the service stops. A comment now and then keeps proxies awake."""
    sent = time.monotonic()
    yield b"retry: 2000\n\n"
    while True:
        state = await wired.asking.run(wired.captures.state, capture)
        rows = await wired.asking.run(wired.captures.events, capture, after=after)
        for row in rows:
            after = row.seq
            data = jsontext.dumps({"at": row.at, "event": row.name, **row.data})
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (row.seq, row.name.encode(), data)
            sent = time.monotonic()
        if rows:
            continue
        if state is None or state in ENDED:
            yield b"event: end\ndata: %s\n\n" % jsontext.dumps({"state": state})
            return
        if wired.stopping.is_set():
            return
        if time.monotonic() - sent > _HEARTBEAT_S:
            yield b": still here\n\n"
            sent = time.monotonic()
        try:
            await asyncio.wait_for(wired.stopping.wait(), _POLL_S)
        except TimeoutError:
            continue
