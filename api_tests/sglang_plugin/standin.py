"""A stand-in for a graphgate service: a real HTTP server that keeps what it is sent and answers as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class StandIn:
    """``url``: where it listens; ``seen``: path, headers and body of each request."""

    url: str
    seen: list[tuple[str, Mapping[str, str], dict[str, Any]]] = field(default_factory=list)


def verdict(kind: str, prefill: str = "full", *, said: str = "All is well.") -> bytes:
    """An answer of ``POST /v1/validations``, as far as the plugin reads it."""
    finding = {"rule": "GG999", "message": f"{said}", "remedy": "Do otherwise."}
    effective = None if kind == "rejected" else {"arguments": [], "graph": {"prefill": {"backend": prefill}}}
    answer = {
        "verdict": kind,
        "summary": said,
        "findings": [] if kind == "accepted" else [finding],
        "effective": effective,
    }
    return json.dumps(answer).encode()


@contextlib.contextmanager
def stand_in(body: bytes, *, status: int = 200, after_s: float = 0.0, location: str = "") -> Iterator[StandIn]:
    """A stand-in that gives this answer to whatever is posted."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.seen.append((self.path, dict(self.headers), given))
            time.sleep(after_s)
            with contextlib.suppress(OSError):
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(body)

        def do_GET(self) -> None:
            found.seen.append((self.path, dict(self.headers), {}))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = StandIn(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
