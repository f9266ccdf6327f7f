"""What a refused launch tells beyond the engine's words, and what changes between releases."""

from __future__ import annotations

from typing import Any

import pytest

from engine.launch_forms import launch_from_request
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import check
from engine.verdict import Verdict

resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def verdict(body: dict[str, Any]) -> Verdict:
    return check(launch_from_request({"model": "Qwen/Qwen3-8B", **body}), resolver).verdict


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ({"arguments": ["--tp-szie", "4"]}, "Did you mean --tp-size?"),
        ({"arguments": ["--cuda-graph-backend-prefill", "ful"]}, "Did you mean full?"),
        ({"cuda_graph_config": {"prefil": {"backend": "full"}}}, "Did you mean prefill?"),
        ({"cuda_graph_config": {"prefill": {"backed": "full"}}}, "Did you mean backend?"),
        ({"cuda_graph_config": {"prefill": {"backend": "breakble"}}}, "Did you mean breakable?"),
        ({"arguments": ["--disable-piecewise-cuda-graph"]}, "write --cuda-graph-backend-prefill=disabled instead"),
    ],
)
def test_a_refused_word_comes_with_the_right_one(body: dict[str, Any], meant: str) -> None:
    answer = verdict(body)
    assert answer.verdict == "rejected"
    assert answer.prediction.outcome == "refused"
    assert meant in answer.summary


def test_a_word_that_is_near_nothing_gets_no_guess() -> None:
    answer = verdict({"arguments": ["--qqqq"]})
    assert answer.verdict == "rejected"
    assert "Did you mean" not in answer.summary


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (["--attention-backend", "torch_native"], "adjusted", "decode.backend full -> disabled"),
        (["--disable-cuda-graph"], "accepted", "decode graphs disabled"),
        (["--pp-size", "4"], "adjusted", "prefill.backend breakable -> disabled"),
        (["--disaggregation-mode", "prefill"], "adjusted", "decode.backend full -> disabled"),
        ([], "accepted", "prefill graphs breakable"),
    ],
)
def test_what_the_engine_switches_off_is_adjusted_and_the_operators_own_switch_is_not(
    arguments: list[str], kind: str, says: str
) -> None:
    answer = verdict({"arguments": arguments})
    assert answer.verdict == kind
    assert says in answer.summary
