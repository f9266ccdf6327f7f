"""What cannot be answered: each kind has its status, its problem type, and a sentence that helps."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api_tests.server import running_server
from api_tests.service.launches import PLAIN

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-2, 600)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["full", "breakable", "disabled", "tc_piecewise", "H200", "0.5.23", "sglang", "8", ""])
    | st.text(max_size=12)
)
CONFIG_KEYS = ["architectures", "model_type", "num_hidden_layers", "hidden_size", "layer_types", "text_config", "x"]
WORDS = [
    "python",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "a/b",
    "--tp-size",
    "8",
    "-1",
    "--disable-cuda-graph",
    "--cuda-graph-max-bs",
    "--cuda-graph-config",
    '{"decode": {"bs": [1]}}',
    "--attention-backend",
    "fa3",
    "--config",
]
JSON = {"content-type": "application/json"}


def post(api: httpx.Client, content: str | bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    """POST these bytes as a validation."""
    return api.post("/v1/validations", content=content, headers=JSON if headers is None else headers)


def assert_problem(answer: httpx.Response, status: int, slug: str, *words: str) -> dict[str, Any]:
    """The problem, once it is one of that status and type, with these words in its detail."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["type"], problem["status"]) == (f"/problems/{slug}", status)
    assert problem["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in problem["detail"]
    return problem


RAW = [
    ("cut off", b'{"model": {"id": "a', 400, "bad-json", ("line 1, column",)),
    ("no JSON at all", b"model=a/b", 400, "bad-json", ("line 1, column 1",)),
    ("two documents", b"{} {}", 400, "bad-json", ("Extra data",)),
    ("not UTF-8", b'{"model": "\xff"}', 400, "bad-json", ("UTF-8", "0xff")),
    ("a name twice", b'{"model": {"id": "a/b", "id": "c/d"}}', 400, "bad-json", ("'id'", "twice")),
    ("NaN", b'{"model": {"id": "a/b"}, "hardware": {"count": NaN}}', 400, "bad-json", ("hardware.count",)),
    (
        "a number beyond all",
        b'{"defaults": {"decode": {"max_bs": 1e999}}}',
        400,
        "bad-json",
        ("defaults.decode.max_bs",),
    ),
    ("5000 digits", b'{"hardware": {"count": ' + b"9" * 5000 + b"}}", 400, "bad-json", ("digits",)),
    ("half a surrogate", b'{"model": {"id": "a/\\ud800"}}', 400, "bad-json", ("surrogate",)),
    ("deep lists", b'{"arguments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "body-too-complex", ("deep",)),
    ("deep objects", b'{"a":' * 200 + b"1" + b"}" * 200, 400, "body-too-complex", ("deep",)),
    ("many items", b'{"arguments": [' + b"0," * 60_000 + b"0]}", 400, "body-too-complex", ("50000 items",)),
    ("ten megabytes", b'{"model": {"id": "' + b"x" * 10_000_000 + b'"}}', 413, "body-too-large", ("1048576 bytes",)),
    ("nothing", b"", 422, "invalid-request", ("empty",)),
    ("null", b"null", 422, "invalid-request", ()),
    ("a list", b"[]", 422, "invalid-request", ("must be an object, not a list",)),
    ("a text", b'"launch"', 422, "invalid-request", ("must be an object, not text",)),
]


@pytest.mark.parametrize(("content", "status", "slug", "words"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
def test_bodies_that_are_no_launch(
    api: httpx.Client, content: bytes, status: int, slug: str, words: tuple[str, ...]
) -> None:
    assert_problem(post(api, content), status, slug, *words)


FIELDS = [json.loads(line) for line in Path(__file__).with_name("bad_fields.jsonl").read_text().splitlines()]
"""Bodies with one wrong field each: status, problem type, JSON pointer of the first error, words of the detail."""


@pytest.mark.parametrize("case", FIELDS, ids=[case["name"] for case in FIELDS])
def test_fields_that_are_wrong(api: httpx.Client, case: dict[str, Any]) -> None:
    problem = assert_problem(post(api, json.dumps(case["body"])), case["status"], case["problem"], *case["says"])
    assert problem["errors"][0]["pointer"] == case["pointer"]
    assert problem["errors"][0]["detail"]
    assert "\x1b" not in problem["detail"]


def test_every_wrong_field_is_named_not_only_the_first(api: httpx.Client) -> None:
    body = {"model": 1, "hardware": {"gpu": 2, "count": "x"}, "zzz": 3}
    problem = assert_problem(post(api, json.dumps(body)), 422, "invalid-request", "4 fields are wrong")
    pointers = {error["pointer"] for error in problem["errors"]}
    assert pointers == {"#/model", "#/hardware/gpu", "#/hardware/count", "#/zzz"}


HEADERS = [
    ("a form", {"content-type": "application/x-www-form-urlencoded"}, "application/json"),
    ("no type", {}, "application/json"),
    ("text", {"content-type": "text/plain"}, "application/json"),
    ("another character set", {"content-type": "application/json; charset=utf-16"}, "UTF-8"),
    ("compressed", {**JSON, "content-encoding": "gzip"}, "Content-Encoding"),
]


@pytest.mark.parametrize(("headers", "word"), [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
def test_bodies_that_are_not_declared_as_json(api: httpx.Client, headers: dict[str, str], word: str) -> None:
    assert_problem(post(api, b"{}", headers), 415, "unsupported-media-type", word)


def test_a_body_without_a_declared_length_is_cut_off_at_the_limit(api: httpx.Client) -> None:
    sent = 0

    def pieces() -> Any:
        nonlocal sent
        for _ in range(160):
            sent += 65536
            yield b" " * 65536

    try:
        answer = api.post("/v1/validations", content=pieces(), headers=JSON)
    except httpx.TransportError:
        assert sent < 160 * 65536  # the server had answered and closed before all of it was sent
    else:
        assert_problem(answer, 413, "body-too-large", "larger")


QUERIES = [
    ("/v1/validations?strct=true", "POST", "strct", "Did you mean strict?"),
    ("/v1/validations?limit=0", "GET", "limit", "greater than or equal to 1"),
    ("/v1/validations?limit=many", "GET", "limit", "whole number"),
    ("/v1/validations?cursor=zzz", "GET", "cursor", "next_cursor"),
    ("/v1/validations?verdict=no", "GET", "verdict", "'rejected'"),
    ("/v1/captures?state=done", "GET", "state", "'succeeded'"),
    ("/v1/gpus?limit=3", "GET", "limit", "Nothing may be given here."),
]


@pytest.mark.parametrize(("address", "method", "field", "words"), QUERIES)
def test_queries_that_are_wrong(api: httpx.Client, address: str, method: str, field: str, words: str) -> None:
    body = {"json": {"model": PLAIN}} if method == "POST" else {}
    problem = assert_problem(api.request(method, address, **body), 422, "invalid-request", words)  # type: ignore[arg-type] # the one keyword is json
    assert problem["errors"][0]["field"] == field


ADDRESSES = [
    ("GET", "/", 404),
    ("GET", "/v1", 404),
    ("GET", "/v1/validations/", 404),
    ("GET", "/v1/validations/val_0", 404),
    ("GET", "/v1/validations/val_" + "0" * 28, 404),
    ("GET", "/v1/validations/%00%1b", 404),
    ("GET", "/v1/captures/cap_" + "0" * 28, 404),
    ("GET", "/v1/captures/cap_" + "0" * 28 + "/events", 404),
    ("DELETE", "/v1/captures/cap_" + "0" * 28, 404),
    ("GET", "/v1/models/gpt2", 404),
    ("GET", "/v1/models/..%2f..%2fetc/passwd", 404),
    ("GET", "/v1/models/%ff/%fe", 422),
    ("GET", "/v1/models/a/%1b%5b31m", 422),
    ("GET", "/v1/models/meta-llama/Llama-3.1-8B-Instruct?revision=../..", 422),
    ("GET", "/v1/rules/%ff", 404),
    ("GET", "/v1/rules/GG999", 404),
    ("GET", "/problems/no-such-problem", 404),
    ("OPTIONS", "/v1/nowhere", 404),
    ("HEAD", "/v1/nowhere", 404),
    ("DELETE", "/v1/validations", 405),
    ("PUT", "/v1/captures", 405),
    ("POST", "/v1/rules", 405),
    ("PATCH", "/livez", 405),
    ("TRACE", "/v1/gpus", 405),
]


@pytest.mark.parametrize(("method", "address", "status"), ADDRESSES)
def test_addresses_and_methods_that_are_not_there(api: httpx.Client, method: str, address: str, status: int) -> None:
    headers = JSON if method in ("POST", "PUT", "PATCH") else {}
    answer = api.request(method, address, headers=headers, content=b"{}" if headers else b"")
    assert answer.status_code == status
    if method != "HEAD":
        slug = {404: "not-found", 405: "method-not-allowed", 422: "invalid-model-id"}[status]
        assert_problem(answer, status, slug)
    if status == 405:
        assert method not in answer.headers["allow"].split(", ")
        assert "OPTIONS" in answer.headers["allow"]


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path: Path) -> None:
    with running_server(tmp_path, GRAPHGATE_BODY_WAIT_S="0.5") as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                b"POST /v1/validations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b'Content-Length: 100\r\n\r\n{"model"'
            )
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"/problems/body-too-slow" in answer


BODIES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.one_of(
            st.none(),
            st.fixed_dictionaries({"id": st.text(max_size=30)}),
            st.fixed_dictionaries({"path": st.text(max_size=30)}),
            st.just(PLAIN),
            st.fixed_dictionaries(
                {"config": st.dictionaries(st.sampled_from(CONFIG_KEYS), SCALARS | st.lists(SCALARS, max_size=3))}
            ),
        ),
        "engine": st.dictionaries(st.sampled_from(["name", "version", "x"]), SCALARS, max_size=2),
        "hardware": st.dictionaries(st.sampled_from(["gpu", "count", "x"]), SCALARS, max_size=2),
        "cuda_graph_config": st.dictionaries(
            st.sampled_from(["prefill", "decode", "x"]),
            st.dictionaries(
                st.sampled_from(["backend", "bs", "max_bs", "max_seq_len", "x"]),
                SCALARS | st.lists(SCALARS, max_size=3),
            ),
        )
        | SCALARS,
        "defaults": st.dictionaries(
            st.sampled_from(["prefill", "decode", "x"]),
            st.dictionaries(st.sampled_from(["backend", "bs", "max_bs"]), SCALARS) | SCALARS,
        ),
        "arguments": st.lists(st.sampled_from(WORDS) | st.text(max_size=10), max_size=6)
        | st.dictionaries(st.sampled_from(["tp_size", "cuda_graph_max_bs", "x"]), SCALARS),
        "launch_command": st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
        "environment": st.dictionaries(st.text(max_size=5), SCALARS, max_size=2),
    },
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(BODIES)
def test_nothing_that_is_asked_is_answered_with_a_fault(api: httpx.Client, body: dict[str, Any]) -> None:
    answer = post(api, json.dumps(body))
    assert answer.status_code in (200, 403, 404, 422, 503), answer.text
    if answer.status_code == 200:
        assert answer.json()["verdict"] in ("accepted", "adjusted", "rejected")
    else:
        problem = answer.json()
        assert problem["detail"]
        assert problem["errors"]
