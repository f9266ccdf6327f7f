"""A real PostgreSQL of a test's own: on a free port, over a folder that it owns; it can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from api_tests.planted import keep, plant
from api_tests.server import free_port

START_S = 30.0
PASSWORD = plant("pg" + "NeverShown" * 2)
"""Of the one user, ``graphgate``; no log and no message of the service may hold it."""


class PostgresServer:
    """Listens on the loopback and on a socket in ``folder``; port and folder stay the same over :meth:`kill` and
    :meth:`start`. ``durable``: what is committed is on disk (fsync), at the price of time.
    """

    def __init__(self, programs: Path, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "postgres.log"
        self._programs = programs
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        # The programs refuse to run as root; Debian's package brings this user.
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            os.chown(folder, pwd.getpwnam(self._user).pw_uid, -1)
        self._initialise()

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases, as GRAPHGATE_DATABASE_URL takes it."""
        return f"postgresql+psycopg://graphgate:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if not self.running:  # after a kill the first start may find the old shared memory still in use
                self._process = self._spawn()
            with contextlib.suppress(psycopg.OperationalError), self._connect():
                return
            time.sleep(0.05)
        raise AssertionError(f"PostgreSQL did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """End it as a power cut would: SIGKILL for it and for each of its processes."""
        if self._process is None:
            return
        pids = [self._process.pid, *_children(self._process.pid)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(10)

    def fresh_database(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{secrets.token_hex(6)}"
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="graphgate",
            password=PASSWORD,
            dbname="postgres",
            autocommit=True,
            connect_timeout=5,
        )

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        subprocess.run(
            [
                str(self._programs / "initdb"),
                *("--pgdata", str(self.folder / "data"), "--username", "graphgate", "--encoding", "UTF8"),
                *("--locale", "C", "--auth", "scram-sha-256", "--pwfile", str(password), "--no-sync"),
            ],
            user=self._user,
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            **({} if self._durable else {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}),
        }
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", str(self.folder / "data")),
                    *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
                ],
                user=self._user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )


@contextlib.contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A server that is ended, and its folder removed, when the block ends; the test skips itself where the program is
    not installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("needs Debian's postgresql")
    # Not pytest's own folder: that one is closed to the user that PostgreSQL runs as.
    folder = Path(tempfile.mkdtemp(prefix="graphgate-pg-"))
    try:
        server = PostgresServer(programs, folder, durable=durable)
        try:
            server.start()
            yield server
        finally:
            server.kill()
            keep(server.log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of the newest installed version; Debian keeps these programs out of PATH."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: int(folder.parent.name), default=None)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
