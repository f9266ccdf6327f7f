"""Every form in which people have a launch becomes the same launch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import InvalidLaunch
from engine.launch_command import parse_command
from engine.launch_forms import arguments_from_object, launch_from_request

FULL = {"prefill": {"backend": "full"}}


@pytest.mark.parametrize(
    "body",
    [
        {"model": {"id": "org/m"}, "cuda_graph_config": FULL, "arguments": ["--tp-size", "8"]},
        {"model": "org/m", "cuda_graph_config": json.dumps(FULL), "arguments": {"tp_size": 8}},
        {"model": {"id": "org/m"}, "arguments": {"tp-size": 8, "cuda_graph_config": FULL}},
        {"arguments": ["--model-path", "org/m", "--tp-size", "8", "--cuda-graph-config", json.dumps(FULL)]},
        {"launch_command": f"sglang serve org/m --tp-size 8 --cuda-graph-config '{json.dumps(FULL)}'"},
        {
            "launch_command": "python3 -m sglang.launch_server \\\n  --model-path=org/m \\\n  --tp-size 8 "
            f"--cuda-graph-config '{json.dumps(FULL)}' > server.log 2>&1 &"
        },
        {
            "launch_command": "/opt/venv/bin/python -m dynamo.sglang --model org/m --tp-size 8",
            "cuda_graph_config": FULL,
        },
    ],
)
def test_the_same_launch_in_every_form(body: dict[str, Any]) -> None:
    launch = launch_from_request(body)
    assert launch.model.id == "org/m"
    assert launch.arguments == ("--tp-size", "8", "--cuda-graph-config", json.dumps(FULL))


def test_assignments_before_the_program_are_the_environment() -> None:
    line = "export FOO=1; env BAR='two words' CUDA_VISIBLE_DEVICES=0,1 nohup sglang serve org/m --tp 2"
    command = parse_command(line)
    assert command.environment == {"FOO": "1", "BAR": "two words", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert command.model == "org/m"
    assert command.arguments == ("--tp", "2")


def test_a_path_is_a_local_model() -> None:
    launch = launch_from_request({"launch_command": "sglang serve --model-path /models/qwen --tp 2"})
    assert launch.model.path == "/models/qwen"
    assert launch.model.id is None


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "model", "No model is named"),
        ({"model": {"id": "a/b", "path": "/x"}}, "model", "id and path"),
        ({"model": {}}, "model", "none of them"),
        ({"model": 3}, "model", "object or a model id"),
        ({"model": {"config": [1]}}, "model.config", "config.json"),
        ({"model": {"path": "/x", "revision": "main"}}, "model.revision", "belongs to model.id"),
        ({"model": "a/b", "arguments": "--tp 8"}, "arguments", "list of words"),
        ({"model": "a/b", "arguments": ["--tp", 8]}, "arguments.1", "not text"),
        ({"model": "a/b", "arguments": ["--x"] * 3000}, "arguments", "too long"),
        ({"model": "a/b", "arguments": ["a\x00b"]}, "arguments.0", "NUL"),
        ({"model": "a/b", "cuda_graph_config": 1}, "cuda_graph_config", "object"),
        (
            {"model": "a/b", "cuda_graph_config": {}, "arguments": ["--cuda-graph-config={}"]},
            "cuda_graph_config",
            "command line too",
        ),
        ({"model": "a/b", "environment": {"A": True}}, "environment.A", "must be text"),
        ({"model": "a/b", "hardware": {"count": 0}}, "hardware.count", "whole number"),
        ({"model": "a/b", "hardware": {"count": True}}, "hardware.count", "whole number"),
        ({"model": "a/b", "engine": []}, "engine", "object"),
        ({"model": "a/b", "defaults": []}, "defaults", "shape of cuda_graph_config"),
        ({"launch_command": "sglang serve 'a"}, "launch_command", "not a shell command"),
        ({"launch_command": "vllm serve org/m"}, "launch_command", "does not start a known engine"),
        ({"launch_command": "python train.py -m sglang.launch_server"}, "launch_command", "known engine"),
        ({"launch_command": ""}, "launch_command", "known engine"),
        ({"launch_command": "sglang serve $MODEL --tp 8"}, "launch_command", "$MODEL"),
        ({"launch_command": "sglang serve `cat m`"}, "launch_command", "value is not known"),
        ({"launch_command": "sglang serve a/b", "arguments": ["--tp", "8"]}, "arguments", "both given"),
    ],
)
def test_a_form_that_cannot_be_taken_says_what_to_change(body: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InvalidLaunch) as caught:
        launch_from_request(body)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_an_argument_object_writes_the_words_of_the_command_line() -> None:
    given = {
        "tp_size": 8,
        "disable_radix_cache": True,
        "enable_lora": False,
        "quantization": None,
        "cuda_graph_bs_decode": [1, 2, 4],
        "mem_fraction_static": 0.9,
    }
    assert arguments_from_object(given) == (
        "--tp-size",
        "8",
        "--disable-radix-cache",
        "--cuda-graph-bs-decode",
        "1",
        "2",
        "4",
        "--mem-fraction-static",
        "0.9",
    )
