"""GPU seconds: reserved when a capture is accepted, settled by what it took, never more than the day has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, update

from api_tests.postgres import running_postgres
from api_tests.security.guarded import Guarded, make_key
from api_tests.service.launches import ACCEPTED
from service.security.identity import Identity
from service.security.quota import reserving
from service.settings import Settings
from service.store.access_tables import gpu_days
from service.store.database import Database, new_id, now
from service.store.opening import open_database
from service.store.quotas import Quotas
from service.store.tables import captures, validations


@contextmanager
def opened(**settings: Any) -> Iterator[Database]:
    database = open_database(Settings(**settings), connections=16)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        with opened(data=tmp_path) as found:
            yield found
        return
    with running_postgres() as server, opened(data=tmp_path, database_url=server.fresh_database()) as found:
        yield found


def a_capture(database: Database, **values: Any) -> str:
    """A row as an accepted capture leaves it."""
    made = new_id("cap")
    text = dict.fromkeys(("summary", "model", "release", "gpu", "rules", "body"), "x")
    with database.write() as connection:
        validation = new_id("val")
        connection.execute(insert(validations), {"id": validation, "created_at": now(), "verdict": "accepted", **text})
        row = {"id": made, "created_at": now(), "state": "queued", "validation_id": validation, "options": "{}"}
        connection.execute(insert(captures), {**row, "job": "{}", **values})
    return made


def ended(database: Database, capture: str, **values: Any) -> None:
    with database.write() as connection:
        connection.execute(update(captures).where(captures.c.id == capture).values(finished_at=now(), **values))


def test_what_is_reserved_counts_until_it_is_settled_by_what_was_used(database: Database) -> None:
    quotas = Quotas(database)
    measured, emulated, waited = (a_capture(database) for _ in range(3))
    for capture in (measured, emulated, waited):
        assert quotas.reserve("key:one", capture, 100, limit=300).granted
    refused = quotas.reserve("key:one", a_capture(database), 1, limit=300)
    assert (refused.granted, refused.taken) == (False, 300)
    assert quotas.reserve("key:two", a_capture(database), 300, limit=300).granted, "another key's day is another"

    report = {"claim": "measured", "wall_s": 12.5}
    ended(database, measured, state="succeeded", started_at=now(), report=json.dumps(report))
    ended(database, emulated, state="succeeded", started_at=now(), report=json.dumps({**report, "claim": "emulated"}))
    ended(database, waited, state="cancelled")
    assert quotas.taken("key:one") == 12.5
    assert quotas.taken("key:one") == 12.5, "settled once"


def test_a_capture_without_a_report_counts_the_time_that_it_ran(database: Database) -> None:
    quotas = Quotas(database)
    lost = a_capture(database)
    assert quotas.reserve("key:one", lost, 100, limit=300).granted
    ended(database, lost, state="dead", started_at="2026-01-01T00:00:00.000Z")
    assert quotas.taken("key:one") == 100, "at most what was reserved"


def test_two_at_once_never_take_more_than_there_is(database: Database) -> None:
    quotas = Quotas(database)
    granted: list[bool] = []
    made = [a_capture(database) for _ in range(24)]

    def take(part: list[str]) -> None:
        granted.extend(quotas.reserve("key:one", capture, 10, limit=100).granted for capture in part)

    threads = [threading.Thread(target=take, args=(made[index::8],)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(granted), sum(granted)) == (24, 10)
    with database.read() as connection:
        assert connection.execute(select(gpu_days.c.seconds)).scalars().all() == [100]


def test_an_acceptance_that_is_repeated_takes_nothing_more(database: Database) -> None:
    quotas = Quotas(database)
    capture = a_capture(database)
    assert quotas.reserve("key:one", capture, 100, limit=150).granted
    assert quotas.reserve("key:one", capture, 100, limit=150).granted
    assert quotas.taken("key:one") == 100
    quotas.release(capture)
    assert quotas.taken("key:one") == 0
    assert quotas.reserve("key:one", capture, 100, limit=150).granted
    assert quotas.taken("key:one") == 100


def fail(seen: list[float], value: float) -> None:
    seen.append(value)
    raise KeyError


def test_an_acceptance_that_fails_gives_back(tmp_path: Path) -> None:
    from engine.capture.job import CaptureOptions
    from service.observation.metrics import Metrics

    with opened(data=tmp_path) as database:
        quotas = Quotas(database)
        one = Identity(id="key:one", owner="key:one", name="one", scopes=frozenset(), gpu_seconds=200)
        taken: list[float] = []
        with pytest.raises(KeyError), reserving(quotas, one, "cap_x", CaptureOptions(timeout_s=150), Metrics()):
            fail(taken, quotas.taken("key:one"))
        assert taken == [150]
        assert quotas.taken("key:one") == 0


def capture_of(**options: Any) -> dict[str, Any]:
    return {**ACCEPTED, "capture": {"sizes": 1, **options}}


def test_over_http_the_answer_names_the_quota(guarded: Guarded) -> None:
    key = make_key(guarded.server.data, "one", "--scope", "capture", "--gpu-seconds", "200/day")
    with guarded.client() as client:
        client.headers["X-API-Key"] = key
        first = client.post("/v1/captures", json=capture_of(timeout_s=150, device="cuda"))
        assert first.status_code == 202
        second = client.post("/v1/captures", json=capture_of(timeout_s=60))
        check_refusal(second, 429, asked=60, taken=150)
        assert 0 < int(second.headers["retry-after"]) <= 86_400
        check_refusal(client.post("/v1/captures", json=capture_of(timeout_s=201)), 403, asked=201, taken=150)
        assert client.post("/v1/captures", json=capture_of(timeout_s=500, device="cpu")).status_code == 202
        quota = client.get("/v1/quota").json()
        assert (quota["name"], quota["gpu_seconds"]["limit"], quota["gpu_seconds"]["left"]) == ("one", 200, 50)
        assert client.delete(f"/v1/captures/{first.json()['id']}").status_code == 200
        assert client.get("/v1/quota").json()["gpu_seconds"]["taken"] == 0
        with guarded.client("capture") as other:
            assert other.get("/v1/quota").json()["gpu_seconds"]["limit"] is None


def check_refusal(answer: httpx.Response, status: int, *, asked: float, taken: float) -> None:
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (status, "/problems/gpu-quota")
    assert "gpu-seconds" in problem["detail"]
    assert {name: problem["quota"][name] for name in ("name", "limit", "asked", "taken")} == {
        "name": "gpu-seconds",
        "limit": 200,
        "asked": asked,
        "taken": taken,
    }
