"""What is too old goes, in batches; what something kept refers to stays."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select

from api_tests.server import running_server
from api_tests.service.launches import ACCEPTED, validate
from api_tests.store.entries import answered, captured
from service.store.captures import Captures
from service.store.database import Database, text_of
from service.store.retention import Pruned, prune
from service.store.tables import capture_events, validation_rules
from service.store.validations import Validations

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=40)
LIMIT = NOW - timedelta(days=30)


def count(database: Database, table: object) -> int:
    """The rows of the table."""
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type] # any table


def test_old_answers_go_in_batches_and_new_ones_stay(database: Database) -> None:
    old = [answered(database, at=OLD + timedelta(seconds=n), rules=("GG101", "GG102")) for n in range(5)]
    new = answered(database, rules=("GG101",))
    at_the_limit = answered(database, at=LIMIT)
    validations = Validations(database)
    assert prune(database, LIMIT, batch=3) == Pruned(0, 3)
    assert [validations.body(identity) is None for identity in old] == [True, True, True, False, False]
    assert prune(database, LIMIT, batch=3) == Pruned(0, 2)
    assert prune(database, LIMIT, batch=3) == Pruned(0, 0)
    assert validations.body(new) == validations.body(at_the_limit) == "{}"
    assert count(database, validation_rules) == 1


def test_an_ended_capture_goes_with_its_events_and_then_its_validation(database: Database) -> None:
    validation = answered(database, at=OLD, rules=("GG101",))
    capture = captured(database, validation, at=OLD, ended=text_of(OLD))
    assert count(database, capture_events) == 3
    assert prune(database, LIMIT) == Pruned(1, 1)
    assert Captures(database).get(capture) is None
    assert (count(database, capture_events), count(database, validation_rules)) == (0, 0)


def test_a_validation_stays_as_long_as_a_kept_capture_refers_to_it(database: Database) -> None:
    waiting, ended_late = (answered(database, at=OLD) for _ in range(2))
    captured(database, waiting, at=OLD)
    captured(database, ended_late, at=OLD, ended=text_of(NOW))
    assert prune(database, LIMIT) == Pruned(0, 0)
    assert all(Validations(database).body(identity) for identity in (waiting, ended_late))


def test_a_server_forgets_what_is_too_old(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_RETENTION_DAYS="0.00002") as server, server.client() as api:
        first = validate(api, ACCEPTED).json()["id"]
        end = time.monotonic() + 20
        while api.get(f"/v1/validations/{first}").status_code == 200:
            assert time.monotonic() < end, "the old answer is still there"
            time.sleep(0.2)
        assert validate(api, ACCEPTED).status_code == 200
