"""Idempotency keys: one request, however often it is sent, to whichever process, whatever is killed."""

from __future__ import annotations

import concurrent.futures
import signal
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from api_tests.hub import HubServer, held, running_hub, status
from api_tests.server import RunningServer, running_server
from api_tests.service.launches import ACCEPTED, PLAIN, REJECTED, SMALL_CAPTURE
from api_tests.service.test_bad_requests import assert_problem
from service.store.database import Database
from service.store.idempotency import Held, IdempotencyKeys, Kept, idempotency_keys

CAPTURE = {"model": PLAIN, "capture": SMALL_CAPTURE}


def send(api: httpx.Client, key: str, body: dict[str, Any], path: str = "/v1/validations") -> httpx.Response:
    return api.post(path, json=body, headers={"Idempotency-Key": key})


def new_key() -> str:
    return str(uuid.uuid4())


def replayed(answer: httpx.Response) -> bool:
    return bool(answer.headers.get("idempotency-replayed") == "true")


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/validations", ACCEPTED, 200),
        ("/v1/validations", {"model": 1}, 422),
        ("/v1/validations?strict=true", REJECTED, 422),
        ("/v1/validations/batch", {"validations": [ACCEPTED, {"model": 1}, REJECTED]}, 200),
        ("/v1/comparisons", {**ACCEPTED, "releases": ["0.5.22", "0.5.23"]}, 200),
        ("/v1/captures", REJECTED, 409),
    ],
)
def test_a_request_sent_again_has_its_first_answer(
    api: httpx.Client, path: str, body: dict[str, Any], code: int
) -> None:
    key = new_key()
    first = send(api, key, body, path)
    assert first.status_code == code
    assert not replayed(first)
    kept = [item["id"] for item in api.get("/v1/validations").json()["items"]]
    again = send(api, key, body, path)
    assert replayed(again)
    assert (again.status_code, again.content) == (code, first.content)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert [item["id"] for item in api.get("/v1/validations").json()["items"]] == kept
    assert send(api, new_key(), body, path).headers.get("idempotency-replayed") is None


def test_a_capture_sent_again_is_the_same_capture(api: httpx.Client) -> None:
    key = new_key()
    first, again = send(api, key, CAPTURE, "/v1/captures"), send(api, key, CAPTURE, "/v1/captures")
    assert (first.status_code, again.status_code) == (202, 202)
    assert replayed(again)
    assert again.headers["location"] == first.headers["location"]
    assert again.json() == first.json()
    api.delete(first.headers["location"])


def test_a_key_belongs_to_its_first_request(api: httpx.Client) -> None:
    key = new_key()
    assert send(api, key, ACCEPTED).status_code == 200
    for path, body in [
        ("/v1/validations", REJECTED),
        ("/v1/validations?strict=true", ACCEPTED),
        ("/v1/captures", ACCEPTED),
    ]:
        problem = assert_problem(send(api, key, body, path), 422, "idempotency-key-reused", key)
        assert api.get(problem["type"]).status_code == 200
    assert replayed(send(api, key, ACCEPTED))


@pytest.mark.parametrize("key", ["", "k" * 256, "two words", "tab\there", "\xe9"])
def test_a_key_that_is_none_is_said(api: httpx.Client, key: str) -> None:
    answer = api.post("/v1/validations", json=ACCEPTED, headers=[(b"idempotency-key", key.encode("latin-1"))])
    assert_problem(answer, 400, "idempotency-key-invalid", "255")


def test_two_keys_are_none(api: httpx.Client) -> None:
    answer = api.post("/v1/validations", json=ACCEPTED, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert_problem(answer, 400, "idempotency-key-invalid")


BODY = {"model": {"id": "org/model"}}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, RunningServer, HubServer]]:
    """Two servers over one database; their hub can be held."""
    data = tmp_path_factory.mktemp("pair")
    with running_hub() as hub:
        hub.add("org/model", {"model_type": "llama", "architectures": ["LlamaForCausalLM"]})
        settings = {
            "GRAPHGATE_OFFLINE": "0",
            "GRAPHGATE_HUB_ENDPOINT": hub.endpoint,
            "GRAPHGATE_HUB_TIMEOUT": "60",
            "GRAPHGATE_NEGATIVE_CACHE": "0",
            "GRAPHGATE_IDEMPOTENCY_LEASE_S": "2",
            "GRAPHGATE_EMBEDDED_WORKER": "off",
        }
        with running_server(data, **settings) as one, running_server(data, **settings) as two:
            yield one, two, hub


@pytest.fixture
def held_model(
    pair: tuple[RunningServer, RunningServer, HubServer],
) -> Iterator[tuple[dict[str, Any], threading.Event]]:
    """A launch of a model that nobody has asked for, whose answer the hub holds back until the gate is open."""
    hub, gate, name = pair[2], threading.Event(), f"org/model-{new_key()}"
    hub.add(name, {"model_type": "llama", "architectures": ["LlamaForCausalLM"]})
    hub.requests.clear()
    hub.behaviour = held(gate)
    yield {"model": {"id": name}}, gate
    gate.set()
    hub.behaviour = None


def test_while_the_first_is_at_work_the_second_is_told_to_wait(
    pair: tuple[RunningServer, RunningServer, HubServer], held_model: tuple[dict[str, Any], threading.Event]
) -> None:
    (one, two, hub), (body, gate), key = pair, held_model, new_key()
    with one.client() as api, two.client() as other, concurrent.futures.ThreadPoolExecutor(1) as room:
        first = room.submit(send, api, key, body)
        _until(lambda: hub.requests)
        for _ in range(2):
            assert 1 <= assert_in_flight(send(other, key, body)) <= 5
            time.sleep(1.2)  # longer than a lease in all: the first one renews it
        assert_in_flight(send(other, key, body))
        gate.set()
        assert first.result().status_code == 200
        again = send(other, key, body)
        assert replayed(again)
        assert again.content == first.result().content


def assert_in_flight(answer: httpx.Response) -> int:
    assert_problem(answer, 409, "idempotency-key-in-flight", "still at work")
    return int(answer.headers["retry-after"])


def _until(condition: Callable[[], Any], limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_answer_that_will_not_last_is_not_kept(pair: tuple[RunningServer, RunningServer, HubServer]) -> None:
    one, two, hub = pair
    key = new_key()
    with one.client() as api, two.client() as other:
        hub.behaviour = status(500)
        failed = send(api, key, BODY)
        assert failed.status_code == 503
        assert failed.headers["retry-after"]
        hub.behaviour = None
        answered = send(other, key, BODY)
        assert answered.status_code == 200
        assert not replayed(answered)
        assert replayed(send(api, key, BODY))


def test_fifty_at_once_over_two_servers_make_one_capture(
    pair: tuple[RunningServer, RunningServer, HubServer],
) -> None:
    one, two, _ = pair
    key = new_key()

    def until_answered(api: httpx.Client) -> httpx.Response:
        while (answer := send(api, key, CAPTURE, "/v1/captures")).status_code == 409:
            assert_in_flight(answer)
            time.sleep(0.1)
        return answer

    with one.client() as first, two.client() as second:
        before = len(first.get("/v1/validations").json()["items"])
        with concurrent.futures.ThreadPoolExecutor(50) as room:
            answers = list(room.map(lambda n: until_answered((first, second)[n % 2]), range(50)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1
        assert sum(not replayed(answer) for answer in answers) == 1
        assert [item["id"] for item in first.get("/v1/captures").json()["items"]] == [answers[0].json()["id"]]
        assert len(first.get("/v1/validations").json()["items"]) == before + 1


def test_a_server_that_is_killed_does_not_keep_the_key(
    pair: tuple[RunningServer, RunningServer, HubServer], held_model: tuple[dict[str, Any], threading.Event]
) -> None:
    """The last test of the pair: one of it ends here."""
    (one, two, hub), (body, gate), key = pair, held_model, new_key()
    with one.client() as api, two.client() as other, concurrent.futures.ThreadPoolExecutor(1) as room:
        before = len(other.get("/v1/validations").json()["items"])
        lost = room.submit(send, api, key, body)
        _until(lambda: hub.requests)
        one.stop(signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            lost.result()
        gate.set()
        while (answer := send(other, key, body)).status_code == 409:
            time.sleep(assert_in_flight(answer))
        assert (answer.status_code, replayed(answer)) == (200, False)
        assert len(other.get("/v1/validations").json()["items"]) == before + 1


def test_what_a_killed_process_had_made_is_not_made_again(server: RunningServer, api: httpx.Client) -> None:
    """As if it had been killed after its work was committed and before its answer was: the row says so."""
    for path, body, listed in [
        ("/v1/captures", CAPTURE, "/v1/captures"),
        ("/v1/validations", ACCEPTED, "/v1/validations"),
        ("/v1/validations/batch", {"validations": [ACCEPTED, REJECTED]}, "/v1/validations"),
    ]:
        key = new_key()
        first = send(api, key, body, path)
        with sqlite3.connect(server.data / "graphgate.sqlite") as database:
            changed = database.execute(
                "UPDATE idempotency_keys SET status = NULL, body = NULL, headers = NULL, lease_until = 0 WHERE key = ?",
                (key,),
            )
            assert changed.rowcount == 1
        database.close()
        made = [item["id"] for item in api.get(listed).json()["items"]]
        again = send(api, key, body, path)
        assert not replayed(again)
        assert [item["id"] for item in api.get(listed).json()["items"]] == made
        if path == "/v1/captures":
            assert again.json()["id"] == first.json()["id"]
            api.delete(first.headers["location"])
        else:
            assert again.content == first.content


@pytest.fixture
def keys(database: Database) -> IdempotencyKeys:
    return IdempotencyKeys(database, lease_s=30.0, kept_s=60.0)


def test_one_of_many_has_the_key_and_subjects_are_apart(keys: IdempotencyKeys) -> None:
    with concurrent.futures.ThreadPoolExecutor(20) as room:
        found = list(room.map(lambda _: keys.take("key:a", "k", "f"), range(20)))
    (mine,) = [one for one in found if isinstance(one, Held)]
    assert isinstance(keys.take("key:b", "k", "another"), Held)
    assert keys.take("key:a", "k", "another") == "other"
    answer = Kept(202, (("location", "/v1/captures/x"),), b"{}")
    keys.keep("key:a", "k", "somebody else", answer)
    assert not isinstance(keys.take("key:a", "k", "f"), Kept)
    keys.keep("key:a", "k", mine.holder, answer)
    assert keys.take("key:a", "k", "f") == answer
    keys.let_go("key:a", "k", mine.holder)
    assert keys.take("key:a", "k", "f") == answer, "what is kept stays"


def test_a_key_that_was_let_go_keeps_what_it_reserves(keys: IdempotencyKeys) -> None:
    first = keys.take("a", "k", "f")
    assert isinstance(first, Held)
    assert not first.again
    keys.let_go("a", "k", first.holder)
    second = keys.take("a", "k", "f")
    assert isinstance(second, Held)
    assert (second.reserved, second.again) == (first.reserved, True)
    keys.keep("a", "k", first.holder, Kept(200, (), b""))
    assert not isinstance(keys.take("a", "k", "f"), Kept), "the first one comes too late"


def test_a_key_is_forgotten_in_time(database: Database) -> None:
    keys = IdempotencyKeys(database, lease_s=30.0, kept_s=0.5)
    first, old = keys.take("a", "k", "f"), keys.take("a", "old", "f")
    assert isinstance(first, Held)
    assert isinstance(old, Held)
    keys.keep("a", "k", first.holder, Kept(200, (), b"first"))
    time.sleep(0.6)
    second = keys.take("a", "k", "another")
    assert isinstance(second, Held)
    assert second.reserved != first.reserved
    assert not second.again
    keys.keep("a", "k", second.holder, Kept(200, (), b"second"))
    assert keys.take("a", "k", "another") == Kept(200, (), b"second")
    keys.take("a", "new", "f")
    with database.read() as connection:
        left = set(connection.execute(select(idempotency_keys.c.key)).scalars())
    assert left == {"k", "new"}, "what is over is taken out"
