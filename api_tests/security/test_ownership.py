"""Callers see what they made, and what others made is not there for them (OWASP API1)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from api_tests.security.guarded import Guarded, make_key
from api_tests.service.launches import ACCEPTED, SMALL_CAPTURE

CAPTURE = {**ACCEPTED, "capture": SMALL_CAPTURE}


@pytest.fixture
def alice(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client("alice") as client:
        yield client


@pytest.fixture
def bob(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client("bob") as client:
        yield client


@pytest.fixture
def admin(guarded: Guarded) -> Iterator[httpx.Client]:
    with guarded.client("admin") as client:
        yield client


def ids(client: httpx.Client, address: str) -> set[str]:
    return {item["id"] for item in client.get(address, params={"limit": 200}).json()["items"]}


def test_a_validation_is_its_makers_alone(alice: httpx.Client, bob: httpx.Client, admin: httpx.Client) -> None:
    made = alice.post("/v1/validations", json=ACCEPTED).json()["id"]
    assert alice.get(f"/v1/validations/{made}").status_code == 200
    hidden = bob.get(f"/v1/validations/{made}")
    unknown = bob.get(f"/v1/validations/val_{'0' * 28}")
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert hidden.json()["type"] == unknown.json()["type"] == "/problems/not-found"
    assert admin.get(f"/v1/validations/{made}").status_code == 200
    assert made in ids(alice, "/v1/validations")
    assert made not in ids(bob, "/v1/validations")
    assert made in ids(admin, "/v1/validations")


def test_a_capture_is_its_makers_alone(alice: httpx.Client, bob: httpx.Client, admin: httpx.Client) -> None:
    made = alice.post("/v1/captures", json=CAPTURE).json()["id"]
    for method, address in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
        assert bob.request(method, f"/v1/captures/{made}{address}").status_code == 404
    assert alice.get(f"/v1/captures/{made}").json()["state"] == "queued", "bob's DELETE did nothing"
    assert made in ids(alice, "/v1/captures")
    assert made not in ids(bob, "/v1/captures")
    assert admin.get(f"/v1/captures/{made}").status_code == 200
    assert alice.delete(f"/v1/captures/{made}").json()["state"] == "cancelled"


def test_keys_of_one_name_are_one_owner(guarded: Guarded, alice: httpx.Client) -> None:
    made = alice.post("/v1/validations", json=ACCEPTED).json()["id"]
    second = make_key(guarded.server.data, "alice", "--scope", "validate")
    with guarded.client() as client:
        answer = client.get(f"/v1/validations/{made}", headers={"X-API-Key": second})
    assert answer.status_code == 200


def test_a_filter_finds_nothing_of_others(alice: httpx.Client, bob: httpx.Client) -> None:
    made = alice.post("/v1/validations", json=ACCEPTED).json()
    found = bob.get("/v1/validations", params={"verdict": made["verdict"], "limit": 200}).json()["items"]
    assert made["id"] not in {item["id"] for item in found}
