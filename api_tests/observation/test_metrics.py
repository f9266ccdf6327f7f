"""What Prometheus reads from a running server, parsed by Prometheus' own client library."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api_tests.postgres import running_postgres
from api_tests.server import RunningServer, free_port, running_server
from api_tests.service.launches import ACCEPTED, REJECTED, SMALL_CAPTURE, wait_for_end

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("metrics")) as running:
        yield running


def samples(client: httpx.Client) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def worker_process(data: Path, **settings: str) -> subprocess.Popen[bytes]:
    environment = {key: text for key, text in os.environ.items() if not key.startswith("GRAPHGATE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "service", "worker"],
        env={**environment, "GRAPHGATE_DATA": str(data), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@contextlib.contextmanager
def running_worker(data: Path, **settings: str) -> Iterator[None]:
    process = worker_process(data, **settings)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_rejected_launch_counts_by_verdict_and_by_rule(server: RunningServer) -> None:
    with server.client() as client:
        before = samples(client)
        assert client.post("/v1/validations", json=REJECTED).json()["verdict"] == "rejected"
        after = samples(client)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("graphgate_verdicts_total", verdict="rejected", release="0.5.23", point="http") == 1
    assert grown("graphgate_findings_total", rule="GG101", severity="error", mode="enforce") == 1
    assert grown("graphgate_check_seconds_count") == 1


def test_requests_are_counted_by_the_template_of_their_address(server: RunningServer) -> None:
    with server.client() as client:
        for identity in ("val_0", "val_1"):
            assert client.get(f"/v1/validations/{identity}").status_code == 404
        assert client.get("/nothing/here").status_code == 404
        found = samples(client)
    name = "graphgate_http_request_seconds_count"
    assert value(found, name, method="GET", route="/v1/validations/{id}", status="404") == 2
    assert value(found, name, method="GET", route="unmatched", status="404") == 1
    assert not any("val_0" in str(labels) for _, labels in found)


def test_the_queue_is_told_from_the_database(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_EMBEDDED_WORKER="off") as server, server.client() as client:
        empty = samples(client)
        assert value(empty, "graphgate_captures", state="queued") == 0
        assert value(empty, "graphgate_queue_age_seconds") == 0
        assert client.post("/v1/captures", json=ACCEPTED).status_code == 202
        time.sleep(0.01)  # ages count from the millisecond
        waiting = samples(client)
    assert value(waiting, "graphgate_captures", state="queued") == 1
    assert value(waiting, "graphgate_queue_age_seconds") > 0
    assert value(waiting, "graphgate_database_up") == 1


def test_a_capture_is_counted_where_it_ran(tmp_path: Path) -> None:
    """In the API's own process with its embedded worker; in the worker's where that is a process of its own."""
    address = f"127.0.0.1:{free_port()}"
    with running_server(tmp_path, GRAPHGATE_EMBEDDED_WORKER="off") as server, server.client() as client:
        capture = client.post("/v1/captures", json={**ACCEPTED, "capture": SMALL_CAPTURE}).json()["id"]
        reader = httpx.Client(base_url=f"http://{address}", trust_env=False)
        with running_worker(tmp_path, GRAPHGATE_METRICS_ADDRESS=address), reader as worker:
            assert wait_for_end(client, capture)["state"] == "succeeded"
            there, here = samples(worker), samples(client)
    for phase in ("prefill", "decode"):
        labels = {"phase": phase, "outcome": "ok", "claim": "emulated"}
        assert value(there, "graphgate_capture_outcomes_total", **labels) == 1
        assert value(here, "graphgate_capture_outcomes_total", **labels) == 0
    assert value(there, "graphgate_captures_ended_total", state="succeeded") == 1
    assert value(there, "graphgate_capture_seconds_count", claim="emulated") == 1
    assert value(here, "graphgate_workers", kind="cpu") == 1


def test_a_worker_says_that_its_address_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = worker_process(tmp_path, GRAPHGATE_METRICS_ADDRESS=address)
        out, err = done.communicate(timeout=60)
    assert done.returncode == 2
    assert f"GRAPHGATE_METRICS_ADDRESS is '{address}'" in err.decode()
    assert "Traceback" not in (out + err).decode()


def test_a_database_that_is_away_is_told_and_nothing_guessed(tmp_path: Path) -> None:
    with running_postgres() as database:
        url = database.fresh_database()
        with running_server(tmp_path, GRAPHGATE_DATABASE_URL=url) as server, server.client() as client:
            assert value(samples(client), "graphgate_database_up") == 1
            database.kill()
            away = samples(client)
            database.start()
    assert away[("graphgate_database_up", frozenset())] == 0
    assert not any(name in ("graphgate_captures", "graphgate_workers") for name, _ in away)
