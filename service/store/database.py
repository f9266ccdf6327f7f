"""One SQLite file, several processes: write-ahead log, short transactions, writers that queue."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import OperationalError

_BEGIN = "graphgate_begin"


def now() -> str:
    """This moment, as the tables keep times."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(prefix: str) -> str:
    """A new id that nobody can guess; ids made later sort later."""
    return f"{prefix}_{int(time.time() * 1000):012x}{secrets.token_hex(8)}"


class Database:
    """Connections to the file. ``wait_s``: how long a writer waits for another one before it gives up."""

    def __init__(self, file: Path, *, wait_s: float = 10.0, connections: int = 32) -> None:
        self.file = file
        self._engine = create_engine(
            f"sqlite:///{file}",
            pool_size=connections,
            max_overflow=connections,
            connect_args={"timeout": wait_s},
        )
        event.listen(self._engine, "connect", _on_connect)
        event.listen(self._engine, "begin", _on_begin)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection that holds the write lock from its first moment; committed at the end, undone on an error."""
        with self._engine.connect().execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}) as connection, connection.begin():
            yield connection

    def ask(self) -> None:
        """Make sure that the file is there, readable, and takes a writer.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: it is not.
        """
        if not self.file.is_file():
            raise OperationalError("", {}, FileNotFoundError(f"{self.file} is gone"))
        with self.write() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").one()

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()

    def raw(self) -> AbstractContextManager[Connection]:
        """A connection for migrations, which begin their own transactions."""
        return self._engine.connect()


def _on_connect(connection: Any, record: Any) -> None:  # noqa: ARG001 - the event's signature
    connection.isolation_level = None  # the driver would begin transactions itself, and late: see _on_begin
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
