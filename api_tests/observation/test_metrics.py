"""What Prometheus reads from a running server, parsed by Prometheus' own client library."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api_tests.server import RunningServer, running_server
from api_tests.service.launches import ACCEPTED, REJECTED

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
