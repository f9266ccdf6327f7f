"""The database: transactions, and what differs between SQLite and PostgreSQL behind one face."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from service.store.address import Address, file_address

if TYPE_CHECKING:
    from service.store.postgresql import Postgresql
    from service.store.sqlite import Sqlite

T = TypeVar("T")
_COMPILED: dict[tuple[str, str], SQLCompiler] = {}
_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> str:
    """This moment, as the tables keep times."""
    return text_of(datetime.now(UTC))


def new_id(prefix: str) -> str:
    """A new id that nobody can guess; ids made later sort later."""
    return f"{prefix}_{int(time.time() * 1000):012x}{secrets.token_hex(8)}"


def time_of(identity: str) -> str:
    """When the id was made, as the tables keep times."""
    return text_of(datetime.fromtimestamp(int(identity.rpartition("_")[2][:12], 16) / 1000, UTC))


def first_id_at(prefix: str, moment: datetime) -> str:
    """What sorts before every id made at that moment or later, and after every earlier one."""
    milliseconds = -((_EPOCH - moment) // _MILLISECOND)  # rounded up: an id's time is whole milliseconds
    return f"{prefix}_{max(0, milliseconds):012x}"


def text_of(moment: datetime) -> str:
    """The moment (in UTC), as the tables keep times."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """Connections to the database. ``wait_s``: how long a writer waits for another one before it gives up, in seconds;
    ``connections``: how many there may be.

    Raises:
        ModuleNotFoundError: PostgreSQL's driver is not installed.
    """

    def __init__(self, address: Address | Path, *, wait_s: float = 10.0, connections: int = 32) -> None:
        self.address = address if isinstance(address, Address) else file_address(address)
        self._kind = _kind(self.address, wait_s=wait_s, connections=connections)

    def read(self) -> AbstractContextManager[Connection]:
        """A connection that sees one state of the database."""
        return self._kind.read()

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction: committed at the end, undone on an error. On SQLite it holds the write lock from its first
        moment; on PostgreSQL rows that it changes because of what they hold are read ``with_for_update``."""
        return self._kind.write()

    def write_again(self, work: Callable[[Connection], T]) -> T:
        """Do work that may be done twice, in a transaction of its own: once more where the connection broke."""
        try:
            with self.write() as connection:
                return work(connection)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        with self.write() as connection:
            return work(connection)

    def alone(self, connection: Connection, name: str) -> None:
        """Until the end of this transaction nobody else passes this line with the same name."""
        self._kind.alone(connection, name)

    def ask(self) -> None:
        """Make sure that the database is there, readable, and takes a writer.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: it is not.
        """
        self._kind.ask()

    def told(self, error: BaseException) -> str:
        """What may be said to anybody about an error of :meth:`ask`."""
        return self._kind.told(error)

    def migrating(self) -> AbstractContextManager[Connection]:
        """A connection for migrations, which begin their own transactions; one process at a time has one."""
        return self._kind.migrating()

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._kind.engine.dispose()


def insert_new(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insertion that passes over rows which are there already."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def insert_texts(connection: Connection, table: Table, rows: Sequence[Mapping[str, str | None]]) -> None:
    """Insert rows of a table whose columns all hold text, passing over those that are there already: as
    :func:`insert_new` does, without looking at each value's type."""
    dialect = connection.dialect.name
    compiled = _COMPILED.get((table.name, dialect))
    if compiled is None:
        compiled = _COMPILED[table.name, dialect] = insert_new(connection, table).compile(dialect=connection.dialect)
    if compiled.positional:
        names = tuple(compiled.positiontup or ())
        connection.exec_driver_sql(compiled.string, [tuple(row[name] for name in names) for row in rows])
    else:
        connection.exec_driver_sql(compiled.string, [dict(row) for row in rows])


def _kind(address: Address, *, wait_s: float, connections: int) -> Sqlite | Postgresql:
    if address.file is not None:
        from service.store.sqlite import Sqlite  # each process needs one of the two

        return Sqlite(address.file, wait_s=wait_s, connections=connections)
    from service.store.postgresql import Postgresql  # its driver is an extra

    return Postgresql(address.url, wait_s=wait_s, connections=connections)
