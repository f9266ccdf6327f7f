"""The OpenAPI document: committed as it is served, and true of what is answered."""

from __future__ import annotations

import importlib
import json
from typing import Any

import httpx
import pytest

from api_tests.material import ROOT
from api_tests.service.launches import ACCEPTED, ADJUSTED, PLAIN, REJECTED

Validator: Any = importlib.import_module("jsonschema").Draft202012Validator
"""The library has no types of its own."""

COMMITTED = ROOT / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(COMMITTED.read_text(encoding="utf-8"))
    return found


def test_the_committed_document_is_the_one_that_is_served(api: httpx.Client, document: dict[str, Any]) -> None:
    assert api.get("/v1/openapi.json").json() == document
    assert document["openapi"].startswith("3.1.")


def test_every_error_is_declared_as_a_problem(document: dict[str, Any]) -> None:
    declared = [
        (path, method, status, list(response["content"]))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, response in operation["responses"].items()
        if int(status) >= 400 and path != "/readyz"
    ]
    assert len(declared) > 30
    assert [row for row in declared if row[3] != ["application/problem+json"]] == []
    assert not {"HTTPValidationError", "ValidationError"} & set(document["components"]["schemas"])


def test_every_address_of_the_contract_is_there(document: dict[str, Any]) -> None:
    found = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    assert {
        "POST /v1/validations",
        "GET /v1/validations",
        "GET /v1/validations/{id}",
        "POST /v1/captures",
        "GET /v1/captures",
        "GET /v1/captures/{id}",
        "GET /v1/captures/{id}/events",
        "DELETE /v1/captures/{id}",
        "GET /v1/models/{org}/{name}",
        "GET /v1/rules",
        "GET /v1/rules/{id}",
        "GET /v1/releases",
        "GET /v1/gpus",
        "GET /livez",
        "GET /readyz",
    } <= found


CALLS: list[tuple[str, str, str, dict[str, Any] | None]] = [
    ("post", "/v1/validations", "/v1/validations", REJECTED),
    ("post", "/v1/validations", "/v1/validations", ADJUSTED),
    ("post", "/v1/validations", "/v1/validations", ACCEPTED),
    ("post", "/v1/validations", "/v1/validations", {"model": PLAIN, "cuda_graph_config": {"prefil": {}}}),
    ("post", "/v1/validations", "/v1/validations?strict=true", REJECTED),
    ("post", "/v1/validations", "/v1/validations", {"model": 1}),
    ("get", "/v1/validations", "/v1/validations?limit=3", None),
    ("post", "/v1/captures", "/v1/captures", REJECTED),
    ("get", "/v1/captures", "/v1/captures", None),
    ("get", "/v1/captures/{id}", "/v1/captures/nothing", None),
    ("get", "/v1/models/{org}/{name}", "/v1/models/Qwen/Qwen3-Next-80B-A3B-Instruct", None),
    ("get", "/v1/rules", "/v1/rules", None),
    ("get", "/v1/rules/{id}", "/v1/rules/GG101", None),
    ("get", "/v1/releases", "/v1/releases", None),
    ("get", "/v1/gpus", "/v1/gpus", None),
    ("get", "/livez", "/livez", None),
    ("get", "/readyz", "/readyz", None),
]


@pytest.mark.parametrize(("method", "path", "address", "body"), CALLS)
def test_answers_have_the_form_that_the_document_gives_them(
    api: httpx.Client, document: dict[str, Any], method: str, path: str, address: str, body: dict[str, Any] | None
) -> None:
    answer = api.request(method, address, json=body)
    responses = document["paths"][path][method]["responses"]
    media = answer.headers["content-type"]
    schema = responses[str(answer.status_code)]["content"][media]["schema"]
    validator = Validator({**schema, "components": document["components"]})
    assert [error.message for error in validator.iter_errors(answer.json())] == []
