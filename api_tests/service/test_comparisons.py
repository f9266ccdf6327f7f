"""One launch on several releases: rewritten for each, with what changes and why."""

from __future__ import annotations

import httpx
import pytest

from engine.sglang.releases import known_releases

LLAMA = {"model": {"id": "meta-llama/Llama-3.1-8B-Instruct"}}
pytestmark = pytest.mark.skipif(len(known_releases()) < 2, reason="one release only is known")


def test_a_removed_option_is_rewritten(api: httpx.Client) -> None:
    body = {**LLAMA, "arguments": ["--cuda-graph-max-bs", "64", "--tp", "2"], "releases": ["0.5.19", "0.5.23"]}
    answer = api.post("/v1/comparisons", json=body)
    assert answer.status_code == 200
    old, new = answer.json()["releases"]
    assert (old["release"], old["arguments"], old["changes"]) == (
        "0.5.19",
        ["--cuda-graph-max-bs", "64", "--tp", "2"],
        [],
    )
    assert new["as_written"]["verdict"] == "rejected"
    assert "ambiguous option: --cuda-graph-max-bs" in new["as_written"]["summary"]
    assert new["arguments"] == ["--cuda-graph-max-bs-decode", "64", "--tp", "2"]
    assert new["verdict"]["verdict"] == "accepted"
    assert new["verdict"]["prediction"]["graph"]["decode"]["max_bs"] == 64
    assert "--cuda-graph-max-bs became --cuda-graph-max-bs-decode." in new["rewritten"]


def test_what_an_upgrade_changes_names_its_step(api: httpx.Client) -> None:
    body = {"model": {"id": "moonshotai/Kimi-Linear-48B-A3B-Instruct"}, "releases": ["0.5.19", "0.5.20"]}
    _, new = api.post("/v1/comparisons", json=body).json()["releases"]
    (change,) = [change for change in new["changes"] if change["key"] == "prefill.backend"]
    assert (change["before"], change["after"]) == ("breakable", "disabled")
    assert "KDA" in change["because"]
    assert change["source"]


@pytest.mark.parametrize(
    ("releases", "slug"),
    [
        (["0.5.23"], "invalid-launch"),
        ([], "invalid-launch"),
        (["0.5.23", "latest"], "unknown-release"),
        ("0.5.23", "invalid-request"),
    ],
)
def test_releases_that_cannot_be_compared(api: httpx.Client, releases: object, slug: str) -> None:
    answer = api.post("/v1/comparisons", json={**LLAMA, "releases": releases})
    assert answer.status_code == 422
    assert answer.json()["type"].endswith(f"/problems/{slug}")
    assert "releases" in answer.text
