"""What was accepted is not lost: restarts, kills, several processes over one database, a database that goes away."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api_tests.material import ROOT
from api_tests.server import running_server
from api_tests.service.launches import (
    ACCEPTED,
    PLAIN,
    SLOW_CAPTURE,
    SMALL_CAPTURE,
    validate,
    wait_for_end,
    wait_for_state,
)
from api_tests.service.test_bad_requests import assert_problem

LONG = {"model": PLAIN, "capture": {**SLOW_CAPTURE, "timeout_s": 600}}
SHORT = {"model": PLAIN, "capture": SMALL_CAPTURE}


def worker_pids(api: httpx.Client, capture: str) -> list[int]:
    """The process ids of the children that ran a capture, oldest first."""
    with api.stream("GET", f"/v1/captures/{capture}/events") as stream:
        lines = []
        for line in stream.iter_lines():
            lines.append(line)
            if '"event":"worker.spawned"' in line:
                break
    return [int(line.split('"pid":')[1].split("}")[0].split(",")[0]) for line in lines if '"pid":' in line]


def gone(pid: int, limit_s: float = 10) -> bool:
    """Whether the process has ended within that time."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_a_capture_whose_server_was_killed_runs_again_after_the_restart(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_CAPTURE_LEASE_S="2") as server, server.client() as api:
        kept = validate(api, ACCEPTED).content
        first = api.post("/v1/captures", json=SHORT).json()["id"]
        second = api.post("/v1/captures", json=SHORT).json()["id"]
        wait_for_state(api, first, "running")
        (pid,) = worker_pids(api, first)
        server.stop(signal.SIGKILL)
        assert gone(pid), "the capture's process outlived its server"
    with running_server(tmp_path, GRAPHGATE_CAPTURE_LEASE_S="2") as server, server.client() as api:
        assert [wait_for_end(api, capture)["state"] for capture in (first, second)] == ["succeeded", "succeeded"]
        assert list((tmp_path / "captures").iterdir()) == [], "no folder is left of either attempt"
        again = api.get(f"/v1/captures/{first}").json()
        assert again["attempts"] == 2
        with api.stream("GET", f"/v1/captures/{first}/events") as stream:
            assert "went silent during attempt 1" in "".join(stream.iter_text())
        items = api.get("/v1/validations").json()["items"]
        assert api.get(f"/v1/validations/{items[-1]['id']}").content == kept


def test_a_server_told_to_stop_gives_the_running_capture_back(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_CAPTURE_GRACE_S="0") as server, server.client() as api:
        capture = api.post("/v1/captures", json=LONG).json()["id"]
        wait_for_state(api, capture, "running")
        (pid,) = worker_pids(api, capture)
        assert server.stop(signal.SIGTERM, 30) == 0
        assert gone(pid)
    with sqlite3.connect(tmp_path / "graphgate.sqlite") as database:
        state, attempts = database.execute("SELECT state, attempts FROM captures").fetchone()
    database.close()
    assert (state, attempts) == ("queued", 0)


def test_a_server_told_to_stop_lets_a_short_capture_end_and_open_streams_close(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_CAPTURE_GRACE_S="60") as server, server.client() as api:
        capture = api.post("/v1/captures", json=SHORT).json()["id"]
        wait_for_state(api, capture, "running")
        with api.stream("GET", f"/v1/captures/{capture}/events") as stream:
            server.process.terminate()
            text = "".join(stream.iter_text())
        assert "event: running" in text
        assert server.process.wait(60) == 0
    with sqlite3.connect(tmp_path / "graphgate.sqlite") as database:
        (state,) = database.execute("SELECT state FROM captures").fetchone()
    database.close()
    assert state == "succeeded"


def test_two_servers_and_a_worker_share_one_database(tmp_path: Path) -> None:
    off = {"GRAPHGATE_EMBEDDED_WORKER": "off"}
    with (
        running_server(tmp_path, **off) as one,
        running_server(tmp_path, **off) as two,
        one.client() as first,
        two.client() as second,
    ):
        with concurrent.futures.ThreadPoolExecutor(16) as room:
            answers = list(room.map(lambda n: validate((first, second)[n % 2], ACCEPTED), range(120)))
        assert {answer.status_code for answer in answers} == {200}
        ids = {answer.json()["id"] for answer in answers}
        assert len(ids) == 120
        assert all(second.get(f"/v1/validations/{identity}").status_code == 200 for identity in sorted(ids)[:10])
        capture = first.post("/v1/captures", json=SHORT).json()["id"]
        time.sleep(1.0)
        assert second.get(f"/v1/captures/{capture}").json()["state"] == "queued"
        with running_worker(tmp_path):
            assert wait_for_end(second, capture)["state"] == "succeeded"


@contextlib.contextmanager
def running_worker(data: Path) -> Iterator[None]:
    """A worker in a process of its own, that ends in good order when it is told to."""
    code = "from service.jobs.process import run_worker as run; from service.settings import Settings; run(Settings())"
    worker = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "GRAPHGATE_DATA": str(data)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        worker.terminate()
        assert worker.wait(30) == 0


def test_a_database_that_goes_away_is_said_and_not_a_fault(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_DATABASE_WAIT_S="0.5") as server, server.client() as api:
        assert api.get("/readyz").json()["checks"]["database"] == "ok"
        lock = sqlite3.connect(tmp_path / "graphgate.sqlite", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        unready = api.get("/readyz")
        assert unready.status_code == 503
        assert "locked" in unready.json()["checks"]["database"]
        refused = validate(api, ACCEPTED)
        assert_problem(refused, 503, "store-unavailable")
        assert refused.headers["retry-after"]
        assert api.get("/livez").status_code == 200
        assert api.get("/v1/validations").status_code == 200
        lock.execute("ROLLBACK")
        lock.close()
        assert validate(api, ACCEPTED).status_code == 200
        assert api.get("/readyz").status_code == 200
        for file in tmp_path.glob("graphgate.sqlite*"):
            file.unlink()
        gone_away = api.get("/readyz")
        assert gone_away.status_code == 503
        assert "gone" in gone_away.json()["checks"]["database"]


def test_too_many_waiting_launches_are_turned_away_and_not_lost_in_a_queue(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_THREADS="1", GRAPHGATE_WAITING="2") as server, server.client() as api:
        with concurrent.futures.ThreadPoolExecutor(24) as room:
            answers = list(room.map(lambda _: validate(api, ACCEPTED), range(96)))
        codes = [answer.status_code for answer in answers]
        assert set(codes) <= {200, 503}
        assert codes.count(200) >= 3
        for answer in answers:
            if answer.status_code == 503:
                assert_problem(answer, 503, "overloaded")
        kept = api.get("/v1/validations", params={"limit": "200"}).json()["items"]
        assert len(kept) == codes.count(200)


def start_fails(data: Path, **settings: str) -> str:
    """What the server says on standard error when it does not start; its exit status is 2."""
    done = subprocess.run(
        [sys.executable, "-m", "service.server", "127.0.0.1", "1"],
        cwd=ROOT,
        env={**os.environ, "GRAPHGATE_DATA": str(data), **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("setting", "value"),
    [("GRAPHGATE_THREADS", "many"), ("GRAPHGATE_LOG_LEVEL", "loud"), ("GRAPHGATE_HUB_TIMEOUT", "soon")],
)
def test_a_setting_that_cannot_be_used_is_named_at_the_start(tmp_path: Path, setting: str, value: str) -> None:
    assert setting in start_fails(tmp_path, **{setting: value})


def test_a_database_that_cannot_be_used_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "GRAPHGATE_DATA" in start_fails(tmp_path / "file" / "below")
    file = tmp_path / "graphgate.sqlite"
    file.write_bytes(b"this is no database, " * 100)
    assert "not a database" in start_fails(tmp_path)
    file.unlink()
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        database.execute("INSERT INTO alembic_version VALUES ('9999')")
    database.close()
    assert "newer graphgate" in start_fails(tmp_path)
