"""One SQLite file, several processes: write-ahead log, short transactions, writers that queue.

A transaction is in the log file before it is answered for (``synchronous=NORMAL``): the death of any process loses
nothing. The log is forced onto the disk at each checkpoint, so that a power cut may take the last moments with it, but
never leaves half a transaction.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import OperationalError

_BEGIN = "graphgate_begin"


class Sqlite:
    """``wait_s``: how long a writer waits for another one before it gives up, in seconds."""

    def __init__(self, file: Path, *, wait_s: float, connections: int) -> None:
        self._file = file
        self._wait_s = wait_s
        # Writers of this process queue here: among themselves they need not poll for the file's lock.
        self._writer = threading.Lock()
        self.engine = create_engine(
            URL.create("sqlite", database=str(file)),
            pool_size=connections,
            max_overflow=connections,
            pool_timeout=wait_s,
            connect_args={"timeout": wait_s, "check_same_thread": False},
        )
        event.listen(self.engine, "connect", _on_connect)
        event.listen(self.engine, "begin", _on_begin)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        if not self._writer.acquire(timeout=self._wait_s):
            raise OperationalError("BEGIN IMMEDIATE", {}, TimeoutError("database is locked"))
        try:
            with (
                self.engine.connect().execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}) as connection,
                connection.begin(),
            ):
                yield connection
        finally:
            self._writer.release()

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with (self._file.parent / "migrate.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.engine.connect() as connection:
                yield connection

    def ask(self) -> None:
        if not self._file.is_file():  # a connection would make an empty one
            raise OperationalError("", {}, FileNotFoundError(f"{self._file} is gone"))
        with self.write() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").one()

    def alone(self, connection: Connection, name: str) -> None:
        """Whoever writes is alone."""

    def told(self, error: BaseException) -> str:
        """The error, for those who ask whether the service is ready."""
        return str(getattr(error, "orig", None) or type(error).__name__)


def _on_connect(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    connection.isolation_level = None  # the driver would begin transactions itself, and late: see _on_begin
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
