"""A process that is told to end does so in good order: not ready first, then deaf, its captures back in the queue."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from api_tests.fleet.device import CPU, make_device
from api_tests.fleet.fleets import Fleet
from api_tests.fleet.parts import started, wait_until
from api_tests.server import running_server
from api_tests.service.launches import PLAIN, wait_for_state


def test_a_service_that_drains_is_not_ready_and_still_answers_and_then_is_gone(tmp_path: Path) -> None:
    device = make_device(tmp_path / "device", CPU, effects=tmp_path / "effects", least_s=60, most_s=60)
    settings = {
        "GRAPHGATE_DRAIN_S": "3",
        "GRAPHGATE_CAPTURE_GRACE_S": "1",
        "GRAPHGATE_WORKER_PYTHON": str(device),
    }
    with running_server(tmp_path / "data", **settings) as server, server.client() as api:
        running = api.post("/v1/captures", json={"model": PLAIN}).json()["id"]
        wait_for_state(api, running, "running")
        assert api.get("/readyz").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        unready = wait_until(lambda: _unready(api), "it is not ready")
        assert unready["checks"]["service"] == "stopping"
        wait_for_state(api, running, "queued")
        accepted = api.post("/v1/captures", json={"model": PLAIN})
        assert accepted.status_code == 202, "whoever still comes is served"
        time.sleep(1)
        assert api.get(f"/v1/captures/{accepted.json()['id']}").json()["state"] == "queued"
        assert server.process.wait(30) == 0
        with pytest.raises(httpx.TransportError):
            api.get("/livez")
    quick = make_device(tmp_path / "quick", CPU, effects=tmp_path / "effects")
    with running_server(tmp_path / "data", GRAPHGATE_WORKER_PYTHON=str(quick)) as server, server.client() as api:
        for capture in (running, accepted.json()["id"]):
            wait_for_state(api, capture, "succeeded")
        assert api.get(f"/v1/captures/{running}").json()["attempts"] == 1, "the interrupted attempt does not count"


def _unready(api: httpx.Client) -> dict[str, dict[str, str]] | None:
    answer = api.get("/readyz")
    return answer.json() if answer.status_code == 503 else None


def test_a_second_signal_ends_the_drain(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_DRAIN_S="600", GRAPHGATE_EMBEDDED_WORKER="off") as server:
        server.process.send_signal(signal.SIGTERM)
        with server.client() as api:
            wait_until(lambda: _unready(api), "it is not ready")
        assert server.stop(signal.SIGTERM, 30) == 0


def test_a_worker_that_is_told_to_stop_gives_its_capture_to_another_one(fleet: Fleet) -> None:
    leaving = fleet.worker("leaving", CPU, most_s=30, GRAPHGATE_CAPTURE_GRACE_S="0")
    with started(leaving):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        begun = fleet.begin(device="cpu")
        wait_until(lambda: fleet.runs(begun), "it runs")
        assert leaving.stop() == 0
        wait_until(lambda: fleet.kinds() == [], "the worker signs off")
    with started(fleet.worker("taking-over", CPU)):
        ended = fleet.ended(begun)
    assert (ended["state"], ended["attempts"]) == ("succeeded", 1)
    assert "told to stop" in fleet.events(begun)
    assert len(fleet.runs(begun)) == 2
