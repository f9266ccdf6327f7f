"""Where the database is: a SQLite file, or a PostgreSQL server, by one setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

_POSTGRESQL = frozenset({"postgresql", "postgresql+psycopg", "postgres"})
EXAMPLE = "postgresql+psycopg://USER:PASSWORD@HOST:5432/DATABASE"


class BadAddress(ValueError):
    """An address that cannot be used; the message never holds the address itself, which may hold a password."""


@dataclass(frozen=True, slots=True)
class Address:
    """``file`` is the SQLite file; None: ``url`` is of a PostgreSQL server."""

    url: URL = field(repr=False)
    file: Path | None

    def __str__(self) -> str:
        return str(self.file) if self.file else self.url.set(query={}).render_as_string(hide_password=True)


def file_address(file: Path) -> Address:
    """The address of a SQLite file."""
    return Address(URL.create("sqlite", database=str(file)), file)


def address_of(text: str) -> Address:
    """The address that is written as a URL.

    Raises:
        BadAddress: it is none, or of another database.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise BadAddress(f"This is no database URL; write {EXAMPLE}.") from None
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return file_address(Path(url.database))
    if url.drivername not in _POSTGRESQL:
        raise BadAddress(f"{url.drivername[:40]} cannot be used; write {EXAMPLE}, or sqlite:///FILE.")
    if not url.database:
        raise BadAddress(f"The database URL names no database; write {EXAMPLE}.")
    return Address(url.set(drivername="postgresql+psycopg"), None)
