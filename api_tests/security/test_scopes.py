"""Every address declares the scope that it needs, and asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from api_tests.material import ROOT
from api_tests.security.guarded import SCOPES, Guarded
from service.app import FURTHER, ROUTERS
from service.security.scopes import ADDRESSES, OPEN

DOCUMENT: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
NOTHING = "0" * 28


def routes() -> set[tuple[str, str]]:
    """Every address of the application, listed in the document or not."""
    found = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    return found | {(method, path) for path, methods in FURTHER.items() for method in methods}


def test_every_address_declares_its_scope() -> None:
    assert routes() - set(ADDRESSES) == set()
    assert {row for row in routes() if ADDRESSES[row] == OPEN} == {
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/problems"),
        ("GET", "/problems/{slug}"),
        ("GET", "/v1/openapi.json"),
    }


def test_the_document_says_the_same() -> None:
    assert set(DOCUMENT["components"]["securitySchemes"]) == {"bearer", "apiKey"}
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            needed = ADDRESSES[method.upper(), path]
            assert operation["security"] == ([] if needed == OPEN else [{"bearer": [needed]}, {"apiKey": [needed]}])
            if needed != OPEN:
                assert {"401", "403", "429"} <= set(operation["responses"]), (method, path)


GUARDED = sorted(row for row in routes() if ADDRESSES[row] != OPEN)


def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
    prefix = "val" if "validations" in path else "cap"
    address = path.replace("{id}", f"{prefix}_{NOTHING}").format(org="meta-llama", name="Llama-3.1-8B-Instruct")
    body = b"{}" if method == "POST" else None
    return client.request(method, address, content=body, headers={"Content-Type": "application/json"} if body else {})


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_key_nothing_is_answered(guarded: Guarded, method: str, path: str) -> None:
    with guarded.client() as client:
        answer = ask(client, method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="graphgate"'
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/unauthenticated"


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_a_key_opens_what_its_scope_names_and_nothing_else(guarded: Guarded, method: str, path: str) -> None:
    needed = ADDRESSES[method, path]
    for scope in SCOPES:
        with guarded.client(scope) as client:
            answer = ask(client, method, path)
        if scope in (needed, "admin"):
            assert answer.status_code not in (401, 403), answer.text
            continue
        assert answer.status_code == 403
        assert answer.json()["needed_scope"] == needed
        assert f'error="insufficient_scope", scope="{needed}"' in answer.headers["www-authenticate"]


@pytest.fixture
def nobody(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client() as client:
        yield client


@pytest.mark.parametrize("address", ["/livez", "/readyz", "/problems", "/problems/unauthenticated", "/v1/openapi.json"])
def test_what_is_open_needs_no_key(nobody: httpx.Client, address: str) -> None:
    assert nobody.get(address).status_code == 200


def test_head_is_guarded_as_get_is_and_options_say_no_more_than_the_methods(nobody: httpx.Client) -> None:
    assert nobody.head("/v1/validations").status_code == 401
    options = nobody.options("/v1/validations")
    assert (options.status_code, options.content) == (204, b"")
    assert "access-control-allow-origin" not in options.headers


@pytest.mark.parametrize(
    "address", ["/v1/validations/", "//v1/validations", "/V1/validations", "/v1/%76alidations%0A", "/v1/./validations"]
)
def test_another_spelling_of_an_address_is_no_way_around(nobody: httpx.Client, address: str) -> None:
    request = nobody.build_request("GET", "/")
    request.url = request.url.copy_with(raw_path=address.encode())
    assert nobody.send(request).status_code in (401, 404)


def test_an_address_without_a_row_needs_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    from service.app import create_app
    from service.security import scopes
    from service.security.opening import table_of
    from service.settings import Settings

    monkeypatch.delitem(scopes.ADDRESSES, ("GET", "/v1/gpus"))
    monkeypatch.delitem(scopes.ADDRESSES, ("GET", "/v1/rules/{id}"))
    settings = Settings(access="required")
    table = table_of(create_app(settings), settings)
    asked: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "root_path": ""}
    assert table.needed({**asked, "path": "/v1/gpus"}) == "admin"
    assert table.needed({**asked, "path": "/v1/rules/GG101"}) == "admin"
    assert table.needed({**asked, "path": "/v1/nothing"}) is None
    assert table.needed({**asked, "path": "/v1/releases"}) == "validate"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer gg_abc"},
        {"Authorization": "Bearer gg_aaaaaaaa_" + "A" * 43},
        {"Authorization": "Bearer " + "A" * 9000},
        {"X-API-Key": ""},
        {"X-API-Key": "gg_aaaaaaaa_" + "ü" * 43},
    ],
    ids=["basic", "empty", "cut", "unknown", "long", "no key", "not ASCII"],
)
def test_what_is_no_key_is_refused_in_words(nobody: httpx.Client, headers: dict[str, str]) -> None:
    answer = nobody.get("/v1/rules", headers={name: value.encode() for name, value in headers.items()})  # type: ignore[arg-type] # bytes, for the one that is not ASCII
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert len(answer.json()["detail"]) > 20


def test_a_key_may_come_in_either_header_but_not_in_both(guarded: Guarded) -> None:
    with guarded.client() as client:
        key = guarded.keys["validate"]
        assert client.get("/v1/rules", headers={"X-API-Key": key}).status_code == 200
        both = {"X-API-Key": key, "Authorization": f"Bearer {key}"}
        assert client.get("/v1/rules", headers=both).status_code == 401


def test_the_right_prefix_with_another_secret_is_refused(guarded: Guarded) -> None:
    key = guarded.keys["validate"]
    other = key[:-1] + ("A" if key[-1] != "A" else "B")
    with guarded.client("validate") as client:
        assert client.get("/v1/rules").status_code == 200, "the key is known to this process"
        assert client.get("/v1/rules", headers={"Authorization": f"Bearer {other}"}).status_code == 401


def test_a_body_is_not_read_before_the_caller_is_known(nobody: httpx.Client) -> None:
    answer = nobody.post("/v1/validations", content=b"x" * 3_000_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 401
