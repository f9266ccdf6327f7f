"""Validations that were answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from service.store.database import Database, insert_texts
from service.store.filters import Filter
from service.store.tables import validation_rules, validations

_BRIEF = [column for column in validations.columns if column.name != "body"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRow:
    """One answered validation; ``body`` is the whole answer, JSON; ``created_by`` its owner, where there are any."""

    id: str
    created_at: str
    verdict: str
    summary: str
    model: str
    release: str
    gpu: str
    rules: tuple[str, ...]
    body: str
    created_by: str | None = None


class Validations:
    """The repository of validations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, row: ValidationRow) -> None:
        """Keep an answer."""
        self.add_all([row])

    def add_all(self, rows: Sequence[ValidationRow]) -> None:
        """Keep answers, all or none; those that are kept already are passed over."""
        values = [_values(row) for row in rows]
        pairs = [{"rule": rule, "validation_id": row.id} for row in rows for rule in row.rules]

        def write(connection: Connection) -> None:
            insert_texts(connection, validations, values)
            if pairs:
                insert_texts(connection, validation_rules, pairs)

        self._database.write_again(write)

    def body(self, identity: str) -> str | None:
        """The answer with that id."""
        with self._database.read() as connection:
            found = connection.execute(select(validations.c.body).where(validations.c.id == identity)).scalar()
        return None if found is None else str(found)

    def page(self, wanted: Filter, *, limit: int, before: str | None) -> list[dict[str, Any]]:
        """Up to ``limit`` answers in short, newest first, older than the id ``before``."""
        query = wanted.of_validations(select(*_BRIEF), before=before).limit(limit)
        with self._database.read() as connection:
            return [_brief(row) for row in connection.execute(query).mappings()]


def _values(row: ValidationRow) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in row.__slots__},
        "summary": row.summary.replace("\0", ""),  # PostgreSQL takes no NUL; the body has it escaped
        "model": row.model.replace("\0", ""),
        "rules": ",".join(row.rules),
    }


def _brief(row: RowMapping) -> dict[str, Any]:
    rules = row["rules"]
    return {**dict(row), "rules": rules.split(",") if rules else []}
