"""Batches: every launch answered in its place, the verdicts kept together, and nobody else kept waiting."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import httpx

from api_tests.service.launches import ACCEPTED, ADJUSTED, PLAIN, REJECTED
from api_tests.service.test_bad_requests import assert_problem


def send(api: httpx.Client, launches: list[Any]) -> httpx.Response:
    return api.post("/v1/validations/batch", json={"validations": launches})


def test_each_launch_is_answered_in_its_place(api: httpx.Client) -> None:
    wrong = [
        ({"model": 1}, "invalid-request", "#/validations/3/model"),
        ("no launch", "invalid-request", "#/validations/4"),
        ({"model": PLAIN, "hardwear": {}}, "invalid-request", "#/validations/5/hardwear"),
        ({"model": PLAIN, "hardware": {"gpu": "H2OO"}}, "unknown-gpu", "#/validations/6/hardware/gpu"),
        ({"model": {"id": "no/such-model"}}, "model-not-found", "#/validations/7/model/id"),
        ({"model": PLAIN, "capture": {}}, "invalid-request", "#/validations/8/capture"),
    ]
    answer = send(api, [ACCEPTED, ADJUSTED, REJECTED, *(launch for launch, _, _ in wrong), ACCEPTED])
    assert answer.status_code == 200
    items = answer.json()["items"]
    assert [item["index"] for item in items] == list(range(10))
    assert [item["validation"] and item["validation"]["verdict"] for item in items] == [
        *("accepted", "adjusted", "rejected"),
        *[None] * 6,
        "accepted",
    ]
    assert answer.json()["counts"] == {"accepted": 2, "adjusted": 1, "rejected": 1, "failed": 6}
    for item, (_, slug, pointer) in zip(items[3:9], wrong, strict=True):
        problem = item["problem"]
        assert problem["type"] == f"/problems/{slug}", problem
        assert problem["errors"][0]["pointer"] == pointer
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert problem["status"] in (404, 422)
        assert api.get(problem["type"]).status_code == 200
    for item in items:
        if item["validation"]:
            kept = api.get(f"/v1/validations/{item['validation']['id']}")
            assert kept.json() == item["validation"]
    alone = api.post("/v1/validations", json=REJECTED).json()
    fields = set(alone) - {"id", "created_at"}
    assert {name: items[2]["validation"][name] for name in fields} == {name: alone[name] for name in fields}


def test_a_thousand_are_taken_and_others_are_answered_meanwhile(api: httpx.Client) -> None:
    launches = [ACCEPTED, ADJUSTED, REJECTED, {"model": 1}] * 250
    order: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(1) as room:
        sent = room.submit(send, api, launches)
        sent.add_done_callback(lambda _: order.append("batch"))
        while not sent.done():
            assert api.get("/livez").status_code == 200
            order.append("livez")
        answer = sent.result()
    assert answer.json()["counts"] == {"accepted": 250, "adjusted": 250, "rejected": 250, "failed": 250}
    assert order.index("batch") >= 5, "the event loop is not blocked"
    ids = {item["validation"]["id"] for item in answer.json()["items"] if item["validation"]}
    assert len(ids) == 750
    listed: set[str] = set()
    cursor: str | None = None
    while ids - listed:
        page = api.get("/v1/validations", params={"limit": "200", **({"cursor": cursor} if cursor else {})}).json()
        listed |= {item["id"] for item in page["items"]}
        cursor = page["next_cursor"]
        assert cursor or not ids - listed


def test_a_batch_that_is_none_is_a_problem(api: httpx.Client) -> None:
    for body, pointer in [
        ({"validations": []}, "#/validations"),
        ({"validations": [ACCEPTED] * 1001}, "#/validations"),
        ({"validations": ACCEPTED}, "#/validations"),
        ({}, "#/validations"),
        ({"validations": [ACCEPTED], "strict": True}, "#/strict"),
    ]:
        answer = api.post("/v1/validations/batch", json=body)
        problem = assert_problem(answer, 422, "invalid-request")
        assert problem["errors"][0]["pointer"] == pointer
    assert_problem(api.get("/v1/validations/batch"), 404, "not-found")
