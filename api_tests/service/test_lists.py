"""Lists over HTTP."""

from __future__ import annotations

import httpx
import pytest


def test_lists_over_http_take_the_same_filters(api: httpx.Client) -> None:
    model = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    launch = {
        "model": {"id": model},
        "cuda_graph_config": {"prefill": {"backend": "full"}},
    }
    hybrid = api.post("/v1/validations", json=launch).json()
    mine = api.get("/v1/validations", params={"rule": "GG101", "model": model, "verdict": "rejected", "limit": 200})
    assert hybrid["id"] in {item["id"] for item in mine.json()["items"]}
    assert all("GG101" in item["rules"] and item["model"] == model for item in mine.json()["items"])
    later = {"since": hybrid["created_at"], "until": hybrid["created_at"]}
    assert api.get("/v1/validations", params=later).json()["items"] == []
    only = {"since": hybrid["created_at"], "release": hybrid["engine"]["version"], "gpu": "H200", "limit": "200"}
    assert hybrid["id"] in {item["id"] for item in api.get("/v1/validations", params=only).json()["items"]}
    assert api.get("/v1/captures", params={"model": "no/such", "rule": "GG101"}).json() == {
        "items": [],
        "next_cursor": None,
    }


@pytest.mark.parametrize(
    ("name", "value"), [("since", "yesterday"), ("until", "2026-12-01T00:00:00"), ("rule", "%"), ("model", "a\0b")]
)
def test_a_filter_that_cannot_be_meant_is_named(api: httpx.Client, name: str, value: str) -> None:
    for path in ("/v1/validations", "/v1/captures"):
        refused = api.get(path, params={name: value})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == name
