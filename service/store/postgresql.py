"""A PostgreSQL server: what is committed is what the server's own settings make durable (on disk, by default)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, create_engine

_MIGRATIONS = 0x67726170
"""The key of the advisory lock that who migrates holds; it is of one database, not of the server."""

_FIRST_CONNECTIONS = 5


class Postgresql:
    """``wait_s``: how long a connection, and a row that another one changes, are waited for, in seconds."""

    def __init__(self, url: URL, *, wait_s: float, connections: int) -> None:
        held = min(connections, _FIRST_CONNECTIONS)
        self.engine = create_engine(
            url,
            pool_size=held,
            max_overflow=connections - held,
            pool_timeout=wait_s,
            pool_pre_ping=True,  # a server that was restarted is not noticed by the connections to the old one
            pool_recycle=1800,
            connect_args={
                "connect_timeout": max(2, round(wait_s)),
                "application_name": "graphgate",
                "options": f"-c lock_timeout={round(wait_s * 1000)} -c timezone=UTC",
                "tcp_user_timeout": 10_000,
            },
        )

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with (
            self.engine.connect().execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            ) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as lock:
            lock.exec_driver_sql("SET lock_timeout = 0")
            lock.exec_driver_sql(f"SELECT pg_advisory_lock({_MIGRATIONS})")
            try:
                with self.engine.connect() as connection:
                    connection.exec_driver_sql("SET lock_timeout = 0")
                    connection.commit()
                    yield connection
                    connection.invalidate()
            finally:
                lock.invalidate()  # the session's end lets the lock go, whatever became of it

    def ask(self) -> None:
        """A number of its own is given only to a transaction that may write: a standby refuses it."""
        with self.write() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").one()
            connection.exec_driver_sql("SELECT pg_current_xact_id()").one()

    def alone(self, connection: Connection, name: str) -> None:
        """Nobody else is in the part of that name until the transaction ends."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATIONS}, {zlib.crc32(name.encode()) % 2**31})")

    def told(self, error: BaseException) -> str:
        """Who asks whether the service is ready need not know which server, database and user it has."""
        return f"PostgreSQL cannot be used ({type(error).__name__}); the log says why"
