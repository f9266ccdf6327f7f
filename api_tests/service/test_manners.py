"""Entity tags, versions by name, Retry-After, event streams that break: what HTTP clients may rely on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import httpx
import pytest

from api_tests.server import RunningServer, running_server
from api_tests.service.launches import ACCEPTED, PLAIN, REJECTED, SLOW_CAPTURE, SMALL_CAPTURE, validate, wait_for_end
from api_tests.service.test_bad_requests import assert_problem
from service.problem_types import ProblemType, all_types
from service.problems import Problem, response_to

V1 = "application/vnd.graphgate.v1+json"


@pytest.fixture(scope="module")
def addresses(server: RunningServer) -> dict[str, str]:
    """Addresses of what does not change, by their templates."""
    with server.client() as api:
        validation = validate(api, ACCEPTED).json()["id"]
        capture = api.post("/v1/captures", json={"model": PLAIN, "capture": SMALL_CAPTURE}).json()["id"]
        wait_for_end(api, capture)
    return {
        "/v1/validations/{id}": f"/v1/validations/{validation}",
        "/v1/captures/{id}": f"/v1/captures/{capture}",
        "/v1/rules": "/v1/rules",
        "/v1/rules/{id}": "/v1/rules/GG101",
        "/v1/releases": "/v1/releases",
        "/v1/gpus": "/v1/gpus",
        "/v1/models/{org}/{name}": "/v1/models/Qwen/Qwen3-Next-80B-A3B-Instruct",
        "/problems": "/problems",
        "/problems/{slug}": "/problems/not-found",
    }


def test_every_address_with_a_tag_is_tried_here(api: httpx.Client, addresses: dict[str, str]) -> None:
    paths = api.get("/v1/openapi.json").json()["paths"]
    declared = {path for path, operations in paths.items() if "304" in operations.get("get", {}).get("responses", {})}
    assert declared == {path for path in addresses if path.startswith("/v1/")}


@pytest.mark.parametrize(
    "template",
    [
        *("/v1/validations/{id}", "/v1/captures/{id}", "/v1/rules", "/v1/rules/{id}", "/v1/releases", "/v1/gpus"),
        *("/v1/models/{org}/{name}", "/problems", "/problems/{slug}"),
    ],
)
def test_what_does_not_change_is_not_sent_twice(api: httpx.Client, addresses: dict[str, str], template: str) -> None:
    address = addresses[template]
    first = api.get(address)
    tag = first.headers["etag"]
    assert re.fullmatch(r'"[!-~]+"', tag)
    assert "no-store" not in first.headers["cache-control"]
    for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        same = api.get(address, headers={"If-None-Match": given})
        assert (same.status_code, same.content) == (304, b"")
        assert same.headers["etag"] == tag
        assert same.headers["x-request-id"]
    for given in ('"other"', tag.strip('"'), 'W/"x"'):
        other = api.get(address, headers={"If-None-Match": given})
        assert (other.status_code, other.content) == (200, first.content)
    assert api.head(address, headers={"If-None-Match": tag}).status_code == 304
    assert api.head(address).headers["etag"] == tag


def test_what_changes_has_no_tag_and_may_not_be_kept(api: httpx.Client) -> None:
    capture = api.post("/v1/captures", json={"model": PLAIN, "capture": SLOW_CAPTURE}).json()["id"]
    for address in (f"/v1/captures/{capture}", "/v1/captures", "/v1/validations", "/livez"):
        answer = api.get(address, headers={"If-None-Match": "*"})
        assert answer.status_code == 200
        assert "etag" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
    api.delete(f"/v1/captures/{capture}")
    missing = api.get("/v1/validations/val_" + "0" * 28, headers={"If-None-Match": "*"})
    assert_problem(missing, 404, "not-found")


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (V1, V1),
        ("application/vnd.graphgate+json", V1),
        (f"{V1.upper()}; charset=utf-8", V1),
        (f"application/json, {V1}", V1),
        (f"application/json, {V1};q=0.5", "application/json"),
        (f"application/vnd.graphgate.v2+json, {V1};q=0.1", V1),
        ("application/vnd.graphgate.v2+json, */*;q=0.1", "application/json"),
        ("application/vnd.graphgate.v2+json, text/html", "application/json"),
        (f"{V1};q=0, application/json", "application/json"),
        ("application/json", "application/json"),
        ("text/html", "application/json"),
    ],
)
def test_a_version_is_answered_by_the_name_that_it_was_asked_by(
    api: httpx.Client, accept: str, content_type: str
) -> None:
    for answer in (
        api.get("/v1/gpus", headers={"Accept": accept}),
        api.post("/v1/validations", json=ACCEPTED, headers={"Accept": accept}),
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"] == content_type
        assert answer.json()


@pytest.mark.parametrize(
    "accept",
    [
        *("application/vnd.graphgate.v2+json", "application/vnd.graphgate.v0+json", "application/vnd.graphgate.v1+xml"),
        f"{V1};q=0",
    ],
)
def test_a_version_that_is_not_there_is_said(api: httpx.Client, accept: str) -> None:
    assert_problem(api.get("/v1/gpus", headers={"Accept": accept}), 406, "not-acceptable", V1)
    assert_problem(api.get("/v1/nothing", headers={"Accept": accept}), 406, "not-acceptable")


def test_a_header_that_is_there_twice_is_read_whole(api: httpx.Client) -> None:
    for given, content_type in [
        ((V1, "text/html"), V1),
        (("text/html", V1), V1),
        (("text/html", "x/y"), "application/json"),
    ]:
        answer = api.get("/v1/gpus", headers=[("Accept", one) for one in given])
        assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    twice = [("Accept", "application/json;q=0"), ("X-Nothing", "a"), ("X-Nothing", "b")]
    assert api.get("/v1/gpus", headers=twice).status_code == 200


def test_problems_keep_their_own_type(api: httpx.Client) -> None:
    assert_problem(api.get("/v1/rules/GG000", headers={"Accept": V1}), 404, "not-found")


def test_a_body_may_name_its_version(api: httpx.Client) -> None:
    text = json.dumps(ACCEPTED)
    named = api.post("/v1/validations", content=text, headers={"Content-Type": V1, "Accept": V1})
    assert (named.status_code, named.headers["content-type"]) == (200, V1)
    other = api.post("/v1/validations", content=text, headers={"Content-Type": "application/vnd.graphgate.v2+json"})
    assert_problem(other, 415, "unsupported-media-type", V1)
    assert V1 in other.headers["accept-post"]


def test_what_is_said_of_the_first_request_is_not_bound_to_its_version(api: httpx.Client) -> None:
    key = {"Idempotency-Key": f"versions-{time.time_ns()}"}
    plain = api.post("/v1/validations", json=REJECTED, headers=key)
    named = api.post("/v1/validations", json=REJECTED, headers={**key, "Accept": V1})
    assert (plain.headers["content-type"], named.headers["content-type"]) == ("application/json", V1)
    assert named.headers["idempotency-replayed"] == "true"
    assert named.content == plain.content


@pytest.fixture(scope="module")
def quiet() -> dict[str, str]:
    return {
        "GRAPHGATE_EMBEDDED_WORKER": "off",
        "GRAPHGATE_STREAM_HEARTBEAT_S": "0.3",
        "GRAPHGATE_CAPTURE_QUEUE": "1",
        "GRAPHGATE_STREAMS": "1",
    }


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory, quiet: dict[str, str]) -> Iterator[RunningServer]:
    """A server whose captures wait for ever, as nobody runs them; one may wait, one stream may be open."""
    with running_server(tmp_path_factory.mktemp("waiting"), **quiet) as server:
        yield server


def test_a_quiet_stream_is_kept_alive_and_says_when_to_come_back(waiting: RunningServer) -> None:
    with waiting.client() as api:
        capture = api.post("/v1/captures", json={"model": PLAIN, "capture": SMALL_CAPTURE}).json()["id"]
        address = f"/v1/captures/{capture}/events"
        with api.stream("GET", address) as stream:
            assert stream.headers["x-accel-buffering"] == "no"
            assert stream.headers["cache-control"] == "no-store"
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            seen = [line for line in _until(lines, ": still here", 2) if line]
            assert seen[:2] == ["id: 1", "event: queued"]

            full = api.post("/v1/captures", json={"model": PLAIN, "capture": SMALL_CAPTURE})
            assert_problem(full, 503, "capture-queue-full")
            assert int(full.headers["retry-after"]) > 0
            crowded = api.get(address)
            assert_problem(crowded, 503, "overloaded")
            assert int(crowded.headers["retry-after"]) > 0
        assert api.delete(f"/v1/captures/{capture}").json()["state"] == "cancelled"

        for _ in range(100):
            again = api.get(address, headers={"Last-Event-ID": "1"})
            if again.status_code == 200:  # the server has seen by now that the first one left
                break
            time.sleep(0.1)
        assert re.findall(r"^event: (.+)$", again.text, re.MULTILINE) == ["cancelled", "end"]
        over = api.get(address, headers={"Last-Event-ID": "2"})
        assert (over.status_code, over.content) == (204, b"")
        whole = api.get(address, params={"after": "2"})
        assert re.findall(r"^event: (.+)$", whole.text, re.MULTILINE) == ["end"]


def _until(lines: Iterator[str], wanted: str, times: int) -> list[str]:
    """The lines until one has come that often."""
    seen: list[str] = []
    while seen.count(wanted) < times:
        seen.append(next(lines))
    return seen


def test_what_is_not_ready_says_when_to_ask_again(waiting: RunningServer) -> None:
    with waiting.client() as api:
        assert "retry-after" not in api.get("/readyz").headers
        for file in waiting.data.glob("graphgate.sqlite*"):
            file.unlink()
        away = api.get("/readyz")
        assert away.status_code == 503
        assert int(away.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "kind", [kind for kind in all_types().values() if kind.status in (429, 503)], ids=lambda kind: kind.slug
)
def test_a_problem_that_passes_says_when(kind: ProblemType) -> None:
    answer = response_to(Problem(kind, "for now"), {"type": "http", "path": "/v1/validations"})
    assert int(answer.headers["retry-after"]) > 0
    chosen = response_to(Problem(kind, "for now", headers={"Retry-After": "77"}), {"type": "http", "path": "/"})
    assert chosen.headers.getlist("retry-after") == ["77"]
