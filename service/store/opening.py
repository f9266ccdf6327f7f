"""The database of the settings, opened, or a sentence about why it cannot be."""

from __future__ import annotations

from pathlib import Path

from alembic.util import CommandError
from sqlalchemy.exc import DatabaseError

from service.settings import SettingsError
from service.store.database import Database
from service.store.migrate import migrate


class StoreError(SettingsError):
    """The database cannot be opened; the message says what to change."""


def open_database(file: Path, *, wait_s: float, connections: int) -> Database:
    """The database in that file, made or brought to its newest form.

    Raises:
        StoreError: the folder cannot be written, or the file is no database of this version or an older one.
    """
    database = Database(file, wait_s=wait_s, connections=connections)
    try:
        migrate(database)
    except OSError as error:
        raise StoreError(
            f"{file.parent} cannot be written ({error.strerror}). Set GRAPHGATE_DATA to a folder that can be."
        ) from None
    except CommandError as error:
        raise StoreError(
            f"{file} is of a newer graphgate than this one ({error}). "
            "Start that one, or set GRAPHGATE_DATA to another folder."
        ) from None
    except DatabaseError as error:
        raise StoreError(
            f"{file} cannot be used as the database ({error.orig}). "
            "Set GRAPHGATE_DATA to another folder, or put the file aside."
        ) from None
    return database
