"""A PostgreSQL that is killed and comes back: said while it is away, and nothing that was answered is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx

from api_tests.postgres import PASSWORD, PostgresServer, running_postgres
from api_tests.server import running_server
from api_tests.service.launches import ACCEPTED, validate
from api_tests.service.test_bad_requests import assert_problem


def test_requests_wait_for_no_dead_database_and_go_on_with_a_new_one(tmp_path: Path) -> None:
    with running_postgres(durable=True) as postgres:
        url = postgres.fresh_database()
        with running_server(tmp_path, GRAPHGATE_DATABASE_URL=url) as server, server.client() as api:
            kept = validate(api, ACCEPTED)
            assert kept.status_code == 200
            assert api.get("/readyz").status_code == 200
            postgres.kill()
            away = validate(api, ACCEPTED)
            assert_problem(away, 503, "store-unavailable")
            assert int(away.headers["retry-after"]) > 0
            unready = api.get("/readyz")
            assert unready.status_code == 503
            assert "PostgreSQL cannot be used" in unready.json()["checks"]["database"]
            assert str(postgres.port) not in unready.text
            assert api.get("/livez").status_code == 200
            postgres.start()
            assert _first_answer(api).status_code == 200
            assert api.get("/readyz").status_code == 200
            again = api.get(f"/v1/validations/{kept.json()['id']}")
            assert again.content == kept.content
        assert PASSWORD not in server.log.read_text()
    assert not list(tmp_path.glob("graphgate.sqlite*"))


def test_a_connection_that_broke_between_two_requests_is_not_noticed(tmp_path: Path) -> None:
    with running_postgres() as postgres:
        url = postgres.fresh_database()
        with running_server(tmp_path, GRAPHGATE_DATABASE_URL=url) as server, server.client() as api:
            assert validate(api, ACCEPTED).status_code == 200
            postgres.kill()
            postgres.start()
            answers = [validate(api, ACCEPTED).status_code for _ in range(20)]
            assert answers == [200] * 20


def test_the_start_waits_for_a_database_that_starts_later(tmp_path: Path) -> None:
    with running_postgres(durable=True) as postgres:
        url = postgres.fresh_database()
        postgres.kill()
        later = threading.Thread(target=_start_once_waited_for, args=(postgres, tmp_path))
        later.start()
        with running_server(tmp_path, GRAPHGATE_DATABASE_URL=url) as server, server.client() as api:
            assert validate(api, ACCEPTED).status_code == 200
            assert "does not answer yet" in server.log.read_text()
        later.join()


def _start_once_waited_for(postgres: PostgresServer, logs: Path) -> None:
    """Start the database when a log says that it is waited for; after 20 s in any case, so that the test can fail."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if any("does not answer yet" in log.read_text() for log in logs.glob("server-*.log")):
            break
        time.sleep(0.05)
    postgres.start()


def _first_answer(api: httpx.Client) -> httpx.Response:
    """The first answer that is no 503, within a few seconds."""
    end = time.monotonic() + 10
    while (answer := validate(api, ACCEPTED)).status_code == 503 and time.monotonic() < end:
        time.sleep(0.1)
    return answer
