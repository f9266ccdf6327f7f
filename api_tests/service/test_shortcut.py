"""The short way of a validation answers as the long one does: a query, even one that changes nothing, takes that."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
LONG = {"strict": "false"}
_EACH_TIME = ("id", "created_at", "request_id")

REQUESTS: list[Any] = [
    {"model": {"id": HYBRID}},
    {"model": {"id": HYBRID}, "cuda_graph_config": {"prefill": {"backend": "full"}}},
    {"model": {"id": HYBRID}, "defaults": {"prefill": {"backend": "full"}}, "environment": {"HF_TOKEN": "hf_secret12"}},
    {"launch_command": f"python -m sglang.launch_server --model-path {HYBRID} --tp 8 --disable-cuda-graph"},
    {"model": {"config": {"architectures": ["LlamaForCausalLM"], "rope_theta": "x" * 20_000}}},
    {"model": {"id": "no-such/model"}},
    {"model": {"id": HYBRID}, "engine": {"version": "0.0.1"}},
    {"model": {"id": HYBRID}, "hardware": {"gpu": "H2OO"}},
    {"model": {"id": HYBRID}, "modle": 1},
    {"model": {"id": HYBRID, "revision": 3}},
    [],
    None,
    "text",
]


@pytest.mark.parametrize("request_body", REQUESTS, ids=lambda body: str(body)[:60])
def test_both_ways_answer_the_same(api: httpx.Client, request_body: Any) -> None:
    short = api.post("/v1/validations", json=request_body)
    again = api.post("/v1/validations", json=request_body)
    long = api.post("/v1/validations", json=request_body, params=LONG)
    texts = [
        {key: value for key, value in each.json().items() if key not in _EACH_TIME} for each in (short, again, long)
    ]
    assert texts[0] == texts[1] == texts[2]
    assert short.status_code == again.status_code == long.status_code
    headers = [sorted(set(each.headers) - {"date"}) for each in (short, again, long)]
    assert headers[0] == headers[1] == headers[2]
    assert short.headers["content-type"] == long.headers["content-type"]


def test_an_answer_given_the_short_way_is_kept(api: httpx.Client) -> None:
    answer = api.post("/v1/validations", json={"model": {"id": HYBRID}})
    assert api.get(f"/v1/validations/{answer.json()['id']}").content == answer.content
