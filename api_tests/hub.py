"""A model hub on this machine, over real sockets: what it serves and how it misbehaves is set by each test."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

Behaviour = Callable[["HubHandler"], None]


class HubServer(ThreadingHTTPServer):
    """Models by id, each with branches and commits; ``behaviour`` replaces the answer to every file request.

    ``requests`` lists what was asked: method, path and the Authorization header (None where there was none).
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.models: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, str] = {}
        self.behaviour: Behaviour | None = None
        self.requests: list[tuple[str, str, str | None]] = []
        self.stopping = threading.Event()

    @property
    def endpoint(self) -> str:
        """Its address, as a hub endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, model_id: str, config: dict[str, Any] | bytes, *, revision: str = "main", token: str = "") -> str:
        """Serve a model's config.json at a branch; answers the commit. With ``token``, only to those who send it."""
        data = config if isinstance(config, bytes) else json.dumps(config).encode()
        commit = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        self.models.setdefault(model_id, {}).update({revision: data, commit: data})
        if token:
            self.private[model_id] = token
        return commit

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are what some tests are about."""


class HubHandler(BaseHTTPRequestHandler):
    """GET and HEAD of ``/ID/resolve/REVISION/config.json``, as the hub answers them."""

    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization")))
        if self.server.behaviour is not None:
            self.close_connection = True
            self.server.behaviour(self)
            return
        model_id, _, rest = unquote(self.path).lstrip("/").partition("/resolve/")
        revision, _, name = rest.rpartition("/")
        revisions = self.server.models.get(model_id)
        token = self.server.private.get(model_id)
        if revisions is None:
            self.answer(401, code="RepoNotFound")
        elif token and self.headers.get("Authorization") != f"Bearer {token}":
            self.answer(403 if self.headers.get("Authorization") else 401, code="GatedRepo")
        elif revision not in revisions:
            self.answer(404, code="RevisionNotFound")
        elif name != "config.json":
            self.answer(404, code="EntryNotFound")
        else:
            data = revisions[revision]
            commit = hashlib.sha1(data, usedforsecurity=False).hexdigest()
            self.answer(200, data, headers={"X-Repo-Commit": commit, "ETag": f'"{commit}"'})

    def do_HEAD(self) -> None:
        self.do_GET()

    def answer(self, status: int, body: bytes = b"", *, code: str = "", headers: dict[str, str] | None = None) -> None:
        """One whole answer."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
        """Nothing on standard error."""


def status(number: int, headers: dict[str, str] | None = None) -> Behaviour:
    """Every file request is answered with that status."""
    return lambda handler: handler.answer(number, b"{}", headers=headers)


def silent(seconds: float) -> Behaviour:
    """Nothing is answered for so long."""
    return lambda handler: _wait(handler, seconds)


def dripping(seconds: float, *, header: bool) -> Behaviour:
    """A byte every 50 ms for so long: within the header, or of the body. No read ever waits long."""

    def drip(handler: HubHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: " if header else b"HTTP/1.1 200 OK\r\n\r\n")
        end = time.monotonic() + seconds
        while time.monotonic() < end and not handler.server.stopping.is_set():
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    return drip


def endless(piece: bytes = b" " * 65536) -> Behaviour:
    """A body without an announced length that does not end by itself."""

    def pour(handler: HubHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not handler.server.stopping.is_set():
            handler.wfile.write(piece)

    return pour


def raw(data: bytes) -> Behaviour:
    """Exactly these bytes, then the connection is closed."""

    def write(handler: HubHandler) -> None:
        handler.wfile.write(data)

    return write


def reset(handler: HubHandler) -> None:
    """The connection is torn down (RST) in the middle of the answer's header."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-")
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def held(gate: threading.Event) -> Behaviour:
    """Answered as usual, once the gate is open."""

    def wait(handler: HubHandler) -> None:
        gate.wait(30)
        handler.server.behaviour = None
        handler.do_GET()
        handler.server.requests.pop()

    return wait


def _wait(handler: HubHandler, seconds: float) -> None:
    handler.server.stopping.wait(seconds)


@contextlib.contextmanager
def running_hub() -> Iterator[HubServer]:
    """A hub that answers until the block ends."""
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
