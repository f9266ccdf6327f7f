"""Answers are committed together, and nobody is told that one is kept before it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from service.store.database import Database, new_id, time_of
from service.store.keeper import Keeper, KeeperFull
from service.store.validations import ValidationRow, Validations


def row() -> ValidationRow:
    """An answer."""
    identity = new_id("val")
    return ValidationRow(
        id=identity,
        created_at=time_of(identity),
        verdict="accepted",
        summary="nothing\0to say",
        model="a/b",
        release="0.5.23",
        gpu="H200",
        rules=("GG101",),
        body="{}",
    )


def handed_in(database: Database, rows: list[ValidationRow], waiting: int = 1000) -> list[BaseException | None]:
    """What became of each row, all handed in at the same time; each that was kept was readable at once."""
    validations = Validations(database)

    async def keep(keeper: Keeper, one: ValidationRow) -> None:
        await keeper.keep(one)
        assert validations.body(one.id) == "{}"

    async def all_of_them() -> list[BaseException | None]:
        keeper = Keeper(validations, waiting=waiting)
        try:
            return await asyncio.gather(*(keep(keeper, one) for one in rows), return_exceptions=True)
        finally:
            await asyncio.to_thread(keeper.close)

    return asyncio.run(all_of_them())


def test_answers_that_come_together_share_a_transaction(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = Validations.add_all

    def counted(self: Validations, rows: Sequence[ValidationRow]) -> None:
        sizes.append(len(rows))
        write(self, rows)

    monkeypatch.setattr(Validations, "add_all", counted)
    assert handed_in(database, [row() for _ in range(100)]) == [None] * 100
    assert sizes == [100]


def test_a_row_that_cannot_be_kept_spoils_no_other(database: Database) -> None:
    rows = [row() for _ in range(5)]
    rows[2] = replace(rows[2], gpu=cast("str", None))
    found = handed_in(database, rows)
    assert [type(each) for each in found] == [type(None), type(None), IntegrityError, type(None), type(None)]


def test_the_same_answer_may_be_handed_in_twice(database: Database) -> None:
    one = row()
    assert handed_in(database, [one, one]) == [None, None]
    assert handed_in(database, [one]) == [None]


def test_a_database_that_takes_nothing_is_an_error_for_everybody(database: Database) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("DROP TABLE validation_rules")
    assert all(isinstance(each, SQLAlchemyError) for each in handed_in(database, [row() for _ in range(3)]))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_too_many_are_turned_away(database: Database) -> None:
    found = handed_in(database, [row() for _ in range(5)], waiting=2)
    assert [type(each) for each in found] == [type(None)] * 2 + [KeeperFull] * 3
