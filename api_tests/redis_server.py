"""A real redis-server of a test's own: on a free port, over a folder that the test owns; it can be killed and started
again."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_tests.server import free_port

START_S = 20.0


class RedisServer:
    """Listens at ``url`` on the loopback only. Its port and folder stay the same over :meth:`kill` and :meth:`start`.

    ``appendonly``: every write is on disk before it is answered, so that a kill loses nothing; otherwise a kill loses
    everything, since nothing is ever saved.
    """

    def __init__(self, folder: Path, *, appendonly: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "redis.log"
        self._appendonly = appendonly
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address, as a broker setting takes it."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it answers."""
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    "redis-server",
                    *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
                    *("--save", "", "--appendonly", "yes" if self._appendonly else "no", "--appendfsync", "always"),
                    *("--daemonize", "no", "--enable-debug-command", "local"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError):
                if self.ask("PING") == "+PONG":
                    return
            time.sleep(0.02)
        raise AssertionError(f"redis-server did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """End it as a power cut would: SIGKILL, nothing is saved at the end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def ask(self, *words: str) -> str:
        """The first line of the answer to an inline command, such as ``LLEN capture.cpu``."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            with connection.makefile("rb") as answer:
                return answer.readline().decode().rstrip("\r\n")


@contextlib.contextmanager
def running_redis(folder: Path, *, appendonly: bool = False) -> Iterator[RedisServer]:
    """A server that is ended when the block ends; the test skips itself where the program is not installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("needs Debian's redis-server")
    server = RedisServer(folder, appendonly=appendonly)
    server.start()
    try:
        yield server
    finally:
        server.kill()
