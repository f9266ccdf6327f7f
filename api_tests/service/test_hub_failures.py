"""What a model hub can do to a request, and that nobody else is held up by it."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterator

import httpx
import pytest

from api_tests import hub as hubs
from api_tests.hub import HubServer
from api_tests.server import RunningServer
from api_tests.service.conftest import SECRET
from api_tests.service.launches import ACCEPTED, validate
from api_tests.service.test_bad_requests import assert_problem

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
}


@pytest.fixture(autouse=True)
def _well_behaved_again(hub: HubServer) -> Iterator[None]:
    yield
    hub.behaviour = None


FAILURES = [
    ("unauthorized", hubs.status(401), 403, "model-access-denied"),
    ("forbidden", hubs.status(403), 403, "model-access-denied"),
    ("missing", hubs.status(404), 404, "model-not-found"),
    ("asked-to-wait", hubs.status(429, {"Retry-After": "7"}), 503, "hub-rate-limited"),
    ("broken", hubs.status(500), 503, "hub-unavailable"),
    ("silent", hubs.silent(20), 503, "hub-unavailable"),
    ("dripping", hubs.dripping(20, header=False), 503, "hub-unavailable"),
    ("endless", hubs.endless(), 422, "config-too-large"),
    ("garbage", hubs.raw(b"\x00\x01\x02 not http\r\n\r\n"), 503, "hub-unavailable"),
    ("hung-up", hubs.raw(b""), 503, "hub-unavailable"),
]


@pytest.mark.parametrize(("name", "behaviour", "status", "slug"), FAILURES, ids=[failure[0] for failure in FAILURES])
def test_what_the_hub_does_has_its_own_problem(
    api: httpx.Client, hub: HubServer, name: str, behaviour: hubs.Behaviour, status: int, slug: str
) -> None:
    hub.behaviour = behaviour
    begun = time.monotonic()
    answer = validate(api, {"model": {"id": f"somebody/{name}"}})
    problem = assert_problem(answer, status, slug)
    assert time.monotonic() - begun < 10
    assert problem["errors"][0]["suggestion"]
    assert SECRET not in answer.text
    if status == 503:
        assert answer.headers["retry-after"] == ("7" if slug == "hub-rate-limited" else "30")


def test_an_unknown_model_is_not_found_by_both_addresses(api: httpx.Client, hub: HubServer) -> None:
    hub.behaviour = hubs.status(404)
    assert_problem(validate(api, {"model": {"id": "somebody/nothing"}}), 404, "model-not-found")
    assert_problem(api.get("/v1/models/somebody/nothing"), 404, "model-not-found")


def test_a_model_of_the_hub_is_pinned_to_its_commit(api: httpx.Client, hub: HubServer) -> None:
    commit = hub.add("somebody/plain", CONFIG)
    found = validate(api, {"model": {"id": "somebody/plain"}}).json()
    assert (found["model"]["source"], found["model"]["revision"]) == ("hub", commit)
    facts = api.get("/v1/models/somebody/plain", params={"revision": commit}).json()
    assert (facts["revision"], facts["layers"]) == (commit, 2)


def test_a_config_of_the_hub_that_cannot_be_understood_names_its_field(api: httpx.Client, hub: HubServer) -> None:
    hub.add("somebody/odd", {**CONFIG, "num_hidden_layers": "many"})
    problem = assert_problem(
        validate(api, {"model": {"id": "somebody/odd"}}), 422, "config-unreadable", "num_hidden_layers"
    )
    assert problem["errors"][0]["pointer"] == "#/model"


def test_a_silent_hub_holds_up_nobody_else(api: httpx.Client, hub: HubServer, server: RunningServer) -> None:
    hub.behaviour = hubs.silent(20)
    with concurrent.futures.ThreadPoolExecutor(8) as room, server.client() as other:
        waiting = [room.submit(validate, other, {"model": {"id": f"somebody/slow{i}"}}) for i in range(8)]
        time.sleep(0.3)
        begun = time.monotonic()
        assert api.get("/livez").json() == {"status": "ok"}
        assert api.get("/readyz").status_code == 200
        assert validate(api, ACCEPTED).json()["verdict"] == "accepted"
        elapsed = time.monotonic() - begun
        assert not any(future.done() for future in waiting), "the hub answered too soon for this test to mean anything"
        assert elapsed < 1.5
        assert {future.result().status_code for future in waiting} == {503}


def test_the_hubs_token_is_nowhere_in_the_log(api: httpx.Client, hub: HubServer, server: RunningServer) -> None:
    hub.behaviour = hubs.status(401)
    validate(api, {"model": {"id": "somebody/secret"}})
    assert any(authorization == f"Bearer {SECRET}" for _, _, authorization in hub.requests)
    assert SECRET not in server.log.read_text()
