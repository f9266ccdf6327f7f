"""Models, rules, releases, GPUs, problem pages, methods and headers."""

from __future__ import annotations

import re

import httpx
import pytest

from api_tests.server import RunningServer


def test_a_models_facts_say_what_proves_the_family(api: httpx.Client) -> None:
    facts = api.get("/v1/models/Qwen/Qwen3-Next-80B-A3B-Instruct").json()
    assert (facts["hybrid_family"], facts["layers"]) == ("gdn", 48)
    assert facts["layer_kinds"][:4] == ["gdn", "gdn", "gdn", "attention"]


def test_rules_have_evidence_and_are_found_by_id_and_slug(api: httpx.Client) -> None:
    rules = api.get("/v1/rules").json()["items"]
    assert [rule["id"] for rule in rules] == sorted(rule["id"] for rule in rules)
    for rule in rules:
        assert rule["evidence"]
        assert rule["documentation"]
    first = next(rule for rule in rules if rule["id"] == "GG101")
    assert api.get("/v1/rules/gg101").json() == api.get(f"/v1/rules/{first['slug']}").json() == first


def test_releases_name_the_newest(api: httpx.Client) -> None:
    releases = api.get("/v1/releases").json()["items"]
    assert "0.5.23" in {release["version"] for release in releases}
    assert [release["newest"] for release in releases].count(True) == 1
    assert releases[-1]["newest"]


def test_gpus_have_memory_and_capability(api: httpx.Client) -> None:
    gpus = {gpu["name"]: gpu for gpu in api.get("/v1/gpus").json()["items"]}
    assert gpus["H200"]["compute_capability"] == "9.0"
    assert all(gpu["memory_mib"] > 10_000 for gpu in gpus.values())


def test_every_problem_type_has_its_page(api: httpx.Client) -> None:
    slugs = re.findall(r"href='/problems/([a-z-]+)'", api.get("/problems").text)
    assert {"bad-json", "invalid-request", "launch-rejected", "hub-unavailable", "unknown-gpu"} <= set(slugs)
    assert len(slugs) == len(set(slugs))
    for slug in slugs:
        page = api.get(f"/problems/{slug}")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert slug in page.text


@pytest.mark.parametrize("address", ["/v1/validations", "/v1/rules", "/v1/gpus", "/livez", "/v1/openapi.json"])
def test_head_is_get_without_the_body(api: httpx.Client, address: str) -> None:
    head, get = api.head(address), api.get(address)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


@pytest.mark.parametrize(
    ("address", "methods"),
    [
        ("/v1/validations", "GET, HEAD, OPTIONS, POST"),
        ("/v1/captures/cap_0", "DELETE, GET, HEAD, OPTIONS"),
        ("/livez", "GET, HEAD, OPTIONS"),
        ("/problems/bad-json", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_lists_the_methods(api: httpx.Client, address: str, methods: str) -> None:
    answer = api.options(address)
    assert (answer.status_code, answer.headers["allow"], answer.content) == (204, methods, b"")


def test_the_callers_request_id_is_taken_over_where_it_is_harmless(api: httpx.Client, server: RunningServer) -> None:
    assert api.get("/livez", headers={"X-Request-ID": "run-17:a"}).headers["x-request-id"] == "run-17:a"
    answer = api.get("/v1/nothing", headers={"X-Request-ID": "a b\tc"})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["x-request-id"] in server.log.read_text()
