"""The database of the settings, opened, or a sentence about why it cannot be."""

from __future__ import annotations

import logging
import time

from alembic.util import CommandError
from sqlalchemy.exc import DatabaseError, OperationalError

from service.settings import Settings, SettingsError
from service.store.address import Address
from service.store.database import Database
from service.store.migrate import migrate

_log = logging.getLogger("graphgate.store")
_PAUSE_S = 0.5
_NOT_COMING = ("authentication", "does not exist", "no pg_hba.conf entry", "permission denied")
"""What the server says where waiting does not help."""


class StoreError(SettingsError):
    """The database cannot be opened; the message says what to change."""


def open_database(settings: Settings, *, connections: int) -> Database:
    """The database of the settings, made or brought to its newest form. A PostgreSQL server that does not answer yet is
    waited for, ``database_start_s`` seconds.

    Raises:
        StoreError: it cannot be used; a folder, a file, a server, a password or a package is not what it must be.
    """
    address = settings.database
    try:
        database = Database(address, wait_s=settings.database_wait_s, connections=connections)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"GRAPHGATE_DATABASE_URL names a PostgreSQL server, and the package {error.name} is not installed. "
            "Install graphgate with the extra that holds it: pip install 'graphgate[fleet]'."
        ) from None
    open_it = _in_file if address.file else _on_server
    try:
        open_it(database, address, settings.database_start_s)
    except CommandError as error:
        raise StoreError(
            f"{address} is of a newer graphgate than this one ({error}). Start that one, or set "
            f"{'GRAPHGATE_DATA to another folder' if address.file else 'GRAPHGATE_DATABASE_URL to another database'}."
        ) from None
    return database


def _in_file(database: Database, address: Address, wait_s: float) -> None:  # noqa: ARG001 - a file is there or not
    try:
        migrate(database)
    except OSError as error:
        folder = address.file.parent if address.file else address
        raise StoreError(
            f"{folder} cannot be written ({error.strerror}). Set GRAPHGATE_DATA to a folder that can be."
        ) from None
    except DatabaseError as error:
        raise StoreError(
            f"{address} cannot be used as the database ({error.orig}). "
            "Set GRAPHGATE_DATA to another folder, or put the file aside."
        ) from None


def _on_server(database: Database, address: Address, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            migrate(database)
            return
        except DatabaseError as error:
            said = " ".join(str(error.orig).split())
            hopeless = not isinstance(error, OperationalError) or any(word in said for word in _NOT_COMING)
            if hopeless or time.monotonic() > end:
                raise StoreError(
                    f"{address} cannot be used as the database ({said}). Check GRAPHGATE_DATABASE_URL and the server."
                ) from None
            _log.warning("the database does not answer yet", extra={"database": str(address)})
        time.sleep(_PAUSE_S)
