"""Lists: filters, time bounds and cursors, over both databases, and the indexes that they read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from api_tests.store.entries import answered, captured
from service.store.captures import Captures
from service.store.database import Database, first_id_at, new_id, text_of, time_of
from service.store.filters import Filter
from service.store.tables import validations
from service.store.validations import Validations

T0 = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment of these tests."""
    return T0 + timedelta(seconds=seconds)


def test_an_id_holds_its_time_and_times_are_places_among_ids() -> None:
    identity = new_id("val")
    moment = datetime.fromisoformat(time_of(identity))
    assert first_id_at("val", moment) < identity < first_id_at("val", moment + timedelta(milliseconds=1))
    assert first_id_at("val", moment + timedelta(microseconds=1)) > identity
    assert (
        first_id_at("val", datetime(1, 1, 1, tzinfo=UTC))
        < identity
        < first_id_at("val", datetime.max.replace(tzinfo=UTC))
    )
    assert text_of(moment) == time_of(identity)


def found(database: Database, **wanted: object) -> list[str]:
    """The ids of the list of validations, newest first."""
    page = Validations(database).page(Filter(**wanted), limit=50, before=None)  # type: ignore[arg-type] # of each kind
    return [row["id"] for row in page]


def test_each_filter_finds_what_is_exactly_so_and_nothing_else(database: Database) -> None:
    plain = answered(database, at=at(0))
    ruled = answered(database, at=at(1), rules=("GG101", "GG1010"), verdict="rejected")
    other = answered(database, at=at(2), rules=("GG1010",), model="a/bc", release="0.5.2", gpu="H100")
    assert found(database) == [other, ruled, plain]
    assert found(database, rule="GG101") == [ruled]
    assert found(database, rule="GG1010") == [other, ruled]
    assert found(database, rule="GG10") == found(database, rule="G%101") == []
    assert found(database, model="a/b") == [ruled, plain]
    assert found(database, release="0.5.2") == found(database, gpu="H100") == [other]
    assert found(database, verdict="rejected", rule="GG1010") == [ruled]
    assert found(database, since=at(1)) == [other, ruled]
    assert found(database, until=at(1)) == [plain]
    assert found(database, since=at(1), until=at(2), rule="GG1010", model="a/b") == [ruled]
    assert found(database, owner="somebody") == []


def test_captures_are_found_by_their_state_and_by_their_validation(database: Database) -> None:
    first = captured(database, answered(database, rules=("GG101",)), at=at(0), ended=text_of(at(9)))
    second = captured(database, answered(database, model="c/d", verdict="rejected", gpu="B200"), at=at(1))

    def captures(**wanted: object) -> list[str]:
        page = Captures(database).page(Filter(**wanted), limit=50, before=None)  # type: ignore[arg-type] # of each kind
        return [row["id"] for row in page]

    assert captures() == [second, first]
    assert captures(state="queued") == captures(model="c/d") == captures(gpu="B200") == [second]
    assert captures(state="succeeded") == captures(rule="GG101") == captures(verdict="accepted") == [first]
    assert captures(since=at(1)) == [second]
    assert captures(until=at(1), release="0.5.23") == [first]
    assert captures(state="queued", rule="GG101") == []


@pytest.mark.parametrize("rule", [None, "GG101"])
def test_pages_hold_each_entry_once_while_new_ones_come(database: Database, rule: str | None) -> None:
    made = [answered(database, at=at(n), rules=("GG101",)) for n in range(7)]
    pages, before = [], None
    while page := Validations(database).page(Filter(rule=rule), limit=3, before=before):
        pages.append([row["id"] for row in page])
        before = pages[-1][-1]
        answered(database, rules=("GG101",))
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [identity for page in pages for identity in page] == made[::-1]


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(verdict="rejected"),
        Filter(model="a/b"),
        Filter(release="0.5.23"),
        Filter(gpu="H200"),
        Filter(rule="GG101"),
        Filter(since=T0, until=at(1)),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_list_is_read_in_the_order_of_an_index(database: Database, wanted: Filter) -> None:
    query = wanted.of_validations(select(validations.c.id), before=new_id("val")).limit(50)
    with database.read() as connection:
        text = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = " ".join(row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}"))
    assert "SEARCH" in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan
