"""Whose an object is."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import select

from service.store.database import Database
from service.store.tables import captures, validations

_TABLES = {"val": validations, "cap": captures}


class Owners:
    """Looks at one column of one row, so that nothing of an object is read for somebody who may not see it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, kind: Literal["val", "cap"], identity: str) -> str | None:
        """The owner of a validation or a capture; None where there is none, or no such object."""
        table = _TABLES[kind]
        with self._database.read() as connection:
            owner = connection.execute(select(table.c.created_by).where(table.c.id == identity)).scalar()
        return None if owner is None else str(owner)
