"""Captures from request to report, run by a real worker process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from api_tests.server import RunningServer, running_server
from api_tests.service.launches import (
    ACCEPTED,
    PLAIN,
    REJECTED,
    SLOW_CAPTURE,
    SMALL_CAPTURE,
    wait_for_end,
    wait_for_state,
)
from api_tests.service.test_bad_requests import assert_problem


def begin(api: httpx.Client, body: dict[str, Any], **capture: Any) -> dict[str, Any]:
    """An accepted capture."""
    answer = api.post("/v1/captures", json={**body, "capture": {**SMALL_CAPTURE, **capture}})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/captures/{found['id']}"
    return found


def events(api: httpx.Client, capture: str, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """All of a capture's events, as a browser would read them, until the stream ends."""
    with api.stream("GET", f"/v1/captures/{capture}/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        return list(_parsed(stream.iter_lines()))


def _parsed(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                yield {"id": fields.get("id"), "event": fields["event"], "data": json.loads(fields["data"])}
            fields = {}


def test_an_accepted_launch_is_captured_and_reported(api: httpx.Client) -> None:
    begun = begin(api, {"model": PLAIN})
    assert begun["state"] in ("queued", "running")
    assert begun["validation"]["verdict"] == "accepted"
    assert begun["report"] is None
    seen = events(api, begun["id"])
    ended = api.get(f"/v1/captures/{begun['id']}").json()
    assert ended["state"] == "succeeded", ended["reason"]
    report = ended["report"]
    assert (report["claim"], report["error"]) == ("emulated", None)
    assert {phase: found["outcome"] for phase, found in report["phases"].items()} == {"prefill": "ok", "decode": "ok"}
    assert all(found["graphs"] for found in report["phases"].values())

    names = [event["event"] for event in seen]
    assert names[:2] == ["queued", "running"]
    assert names[-2:] == ["succeeded", "end"]
    assert names.index("prefill.capture.end") < names.index("decode.runner.begin")
    numbers = [int(event["id"]) for event in seen if event["id"]]
    assert numbers == list(range(1, len(numbers) + 1))
    again = events(api, begun["id"], {"Last-Event-ID": str(numbers[-2])})
    assert [event["event"] for event in again] == ["succeeded", "end"]


def test_a_rejected_launch_is_not_captured(api: httpx.Client) -> None:
    before = api.get("/v1/captures").json()["items"]
    answer = api.post("/v1/captures", json=REJECTED)
    problem = assert_problem(answer, 409, "launch-rejected", '"on_rejected": "prove"')
    assert problem["validation"]["findings"][0]["rule"] == "GG101"
    assert api.get("/v1/captures").json()["items"] == before


def test_a_rejected_launch_is_proven_where_that_is_asked_for(api: httpx.Client) -> None:
    begun = begin(api, {**REJECTED, "on_rejected": "prove"}, phases=["prefill"])
    ended = wait_for_end(api, begun["id"])
    assert ended["state"] == "succeeded", ended["reason"]
    prefill = ended["report"]["phases"]["prefill"]
    assert prefill["outcome"] == "guard_refused"
    assert "state_indices_list" in prefill["error"]["message"]
    assert "init_cuda_graph_state" in prefill["error"]["message"]
    assert ended["validation"]["verdict"] == "rejected"


def test_what_the_engine_refuses_cannot_be_proven(api: httpx.Client) -> None:
    body = {"model": PLAIN, "cuda_graph_config": {"prefil": {}}, "on_rejected": "prove"}
    assert_problem(api.post("/v1/captures", json=body), 409, "launch-rejected", "nothing to prove")


def test_bad_capture_options_name_their_field(api: httpx.Client) -> None:
    for capture, pointer, status in [
        ({"phases": ["prefil"]}, "#/capture/phases", 422),
        ({"sizes": 0}, "#/capture/sizes", 422),
        ({"timeout_s": -1}, "#/capture/timeout_s", 422),
        ({"layers": 10**9}, "#/capture/layers", 422),
        ({"device": "tpu"}, "#/capture/device", 422),
        ({"memory_mb": 5}, "#/capture/memory_mb", 422),
    ]:
        answer = api.post("/v1/captures", json={**ACCEPTED, "capture": capture})
        assert answer.status_code == status, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
        assert answer.json()["errors"][0]["suggestion"]
    answer = api.post("/v1/captures", json={**ACCEPTED, "on_rejected": "proof"})
    assert_problem(answer, 422, "invalid-request", "refuse or prove")


def test_captures_run_one_by_one_and_waiting_or_running_ones_can_be_cancelled(api: httpx.Client) -> None:
    first = begin(api, {"model": PLAIN}, **SLOW_CAPTURE)["id"]
    second = begin(api, {"model": PLAIN})["id"]
    wait_for_state(api, first, "running")
    assert api.get(f"/v1/captures/{second}").json()["state"] == "queued"

    gone = api.delete(f"/v1/captures/{second}")
    assert (gone.status_code, gone.json()["state"]) == (200, "cancelled")
    stopping = api.delete(f"/v1/captures/{first}")
    assert (stopping.status_code, stopping.json()["cancel_requested"]) == (202, True)
    ended = wait_for_end(api, first, 30)
    assert ended["state"] == "cancelled"
    assert [event["event"] for event in events(api, first)][-3:] == ["worker.ended", "cancelled", "end"]
    assert api.delete(f"/v1/captures/{first}").status_code == 200
    listed = api.get("/v1/captures", params={"state": "cancelled"}).json()["items"]
    assert {first, second} <= {item["id"] for item in listed}


def test_an_ended_capture_cannot_be_cancelled(api: httpx.Client) -> None:
    done = next(item for item in api.get("/v1/captures", params={"state": "succeeded"}).json()["items"])
    assert_problem(api.delete(f"/v1/captures/{done['id']}"), 409, "capture-finished", "succeeded")


def test_a_time_limit_ends_a_capture_and_the_report_says_so(api: httpx.Client, server: RunningServer) -> None:
    begun = begin(api, {"model": PLAIN}, **{**SLOW_CAPTURE, "timeout_s": 1})
    ended = wait_for_end(api, begun["id"], 40)
    assert ended["state"] == "succeeded"
    assert "timeout" in {phase["outcome"] for phase in ended["report"]["phases"].values()}
    assert list((server.data / "captures").glob("capture-*")) == []


def test_streams_are_bounded_and_head_does_not_hang(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, GRAPHGATE_EMBEDDED_WORKER="off", GRAPHGATE_STREAMS="1") as server,
        server.client() as api,
        server.client() as other,
    ):
        capture = begin(api, {"model": PLAIN})["id"]
        address = f"/v1/captures/{capture}/events"
        assert api.head(address).headers["content-type"].startswith("text/event-stream")
        with api.stream("GET", address) as stream:
            lines = stream.iter_lines()
            while next(lines) != "event: queued":
                pass
            assert_problem(other.get(address), 503, "overloaded", "1 event streams")
            assert other.delete(f"/v1/captures/{capture}").status_code == 200
            assert "event: end" in list(lines)
        assert "event: cancelled" in other.get(address).text
