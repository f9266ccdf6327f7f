"""Load over HTTP/1.1 from one process, cheaply: requests are bytes made beforehand, answers are only measured.

    python scripts/_load.py PORT PATH CONNECTIONS REQUESTS < BODIES

BODIES holds one JSON body a line; each connection sends the next one when its last was answered. ``@@@@@@@@`` in a body
is another number in each request. One JSON object is written: ``seconds``, ``errors`` (answers other than 200, broken
connections) and ``us``, each request's microseconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array
from typing import cast

import uvloop

HOST = "127.0.0.1"
NUMBER = b"@@@@@@@@"


class Load:
    """What is left to send, and what was measured."""

    def __init__(self, requests: list[bytes], number: int) -> None:
        self.requests = requests
        self.left = number
        self._first = time.time_ns() % 10**8
        self.times = array("L")
        self.errors = 0
        self.open = 0
        self.over = asyncio.get_running_loop().create_future()

    def next(self) -> bytes:
        """The next request."""
        self.left -= 1
        request = self.requests[self.left % len(self.requests)]
        return request.replace(NUMBER, b"%08d" % ((self._first + self.left) % 10**8))


class Client(asyncio.Protocol):
    """One connection: sends the next request as soon as the answer to the last one is whole."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._transport: asyncio.Transport | None = None
        self._got = bytearray()
        self._wanted = -1
        self._begun = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class, which is no subclass
        self._load.open += 1
        self._next()

    def _next(self) -> None:
        load = self._load
        if self._transport is None:
            return
        if load.left <= 0:
            self._transport.close()
            return
        request = load.next()
        self._got.clear()
        self._wanted = -1
        self._begun = time.perf_counter_ns()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        got = self._got
        got += data
        if self._wanted < 0:
            end = got.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(got[:end]).lower()
            place = head.index(b"content-length:") + 15
            self._wanted = end + 4 + int(head[place:].split(b"\r\n", 1)[0])
            if head[9:12] != b"200":
                self._load.errors += 1
        if len(got) >= self._wanted:
            self._load.times.append((time.perf_counter_ns() - self._begun) // 1000)
            self._begun = 0
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        if self._begun:
            self._load.errors += 1
        self._load.open -= 1
        if self._load.open == 0 and not self._load.over.done():
            self._load.over.set_result(None)


async def measure(port: int, path: str, connections: int, number: int, bodies: list[bytes]) -> dict[str, object]:
    """Send ``number`` requests over so many connections."""
    head = f"POST {path} HTTP/1.1\r\nhost: {HOST}:{port}\r\ncontent-type: application/json\r\ncontent-length: "
    load = Load([f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies], number)
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Client(load), HOST, port)
    await load.over
    return {"seconds": time.perf_counter() - begun, "errors": load.errors, "us": load.times.tolist()}


def main() -> int:
    """Measure and print."""
    port, path, connections, number = sys.argv[1:5]
    bodies = sys.stdin.buffer.read().splitlines()
    found = uvloop.run(measure(int(port), path, int(connections), int(number), bodies))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
