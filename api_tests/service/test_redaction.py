"""Secrets of a launch are in no answer, no database and no log."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api_tests.planted import plant
from api_tests.server import RunningServer
from api_tests.service.launches import PLAIN, validate

SECRET = plant("s3cr3t-" + "value-of-nobody")

LAUNCHES: list[tuple[str, dict[str, Any]]] = [
    ("environment", {"model": PLAIN, "environment": {"HF_TOKEN": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}}),
    ("an option", {"model": PLAIN, "arguments": ["--api-key", SECRET]}),
    ("an option with =", {"model": PLAIN, "arguments": [f"--api-key={SECRET}"]}),
    ("an object", {"model": PLAIN, "arguments": {"api_key": SECRET}}),
    ("an unknown option", {"model": PLAIN, "arguments": ["--my-password", SECRET]}),
    (
        "a shell line",
        {
            "launch_command": f"HF_TOKEN={SECRET} python -m sglang.launch_server"
            f" --model-path meta-llama/Llama-3.1-8B-Instruct --api-key '{SECRET}'"
        },
    ),
]


@pytest.mark.parametrize("body", [row[1] for row in LAUNCHES], ids=[row[0] for row in LAUNCHES])
def test_a_secret_is_hidden_wherever_it_stood(api: httpx.Client, server: RunningServer, body: dict[str, Any]) -> None:
    answer = validate(api, body)
    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert "***" in answer.text
    assert SECRET not in api.get(f"/v1/validations/{answer.json()['id']}").text
    assert SECRET not in api.get("/v1/validations").text
    files = [server.log, *server.data.glob("graphgate.sqlite*")]
    assert all(SECRET.encode() not in file.read_bytes() for file in files)


def test_what_only_sounds_like_a_secret_is_left_alone(api: httpx.Client) -> None:
    arguments = ["--max-total-tokens", "100000", "--tokenizer-path", "/tokens/of/mine"]
    found = validate(api, {"model": PLAIN, "arguments": arguments, "environment": {"TOKENIZERS_PARALLELISM": "false"}})
    assert found.json()["request"]["arguments"] == arguments
    assert found.json()["request"]["environment"] == {"TOKENIZERS_PARALLELISM": "false"}
