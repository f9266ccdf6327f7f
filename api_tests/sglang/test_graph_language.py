"""The graph configuration's language, the platform's defaults in it, and sizes that nobody can capture."""

from __future__ import annotations

from typing import Any

import pytest

from api_tests.conformance.launches import config
from engine.errors import InvalidLaunch
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.predict import Predicted, predict


def asked(*arguments: str, defaults: dict[str, Any] | None = None, model: str = "llama", **more: Any) -> Predicted:
    launch = Launch(model=ModelRef(path=model), arguments=arguments, defaults=defaults or {}, **more)
    facts = ModelFacts(model_id=None, source="inline", config=config(model))
    return predict(launch, facts, gpu_named(launch.gpu))


def prefill(predicted: Predicted) -> Any:
    assert predicted.prediction.graph is not None, predicted.prediction.error
    return predicted.prediction.graph["prefill"]


def test_a_platform_default_is_taken_and_not_locked() -> None:
    predicted = asked(defaults={"prefill": {"backend": "full", "max_bs": 1024}})
    assert (prefill(predicted).backend, prefill(predicted).max_bs) == ("full", 1024)
    assert predicted.prediction.locked == ()
    assert {d.key: d.layer for d in predicted.ledger}["prefill.backend"] == "platform-default"


def test_the_operator_stands_above_the_platform() -> None:
    predicted = asked("--cuda-graph-backend-prefill", "breakable", defaults={"prefill": {"backend": "full"}})
    assert prefill(predicted).backend == "breakable"
    assert predicted.prediction.locked == (("prefill", "backend"),)


def test_the_engine_switches_a_platform_default_off_where_a_lock_would_hold() -> None:
    arguments = ("--disaggregation-mode", "decode")
    default = {"prefill": {"backend": "full"}}
    assert prefill(asked(*arguments, defaults=default)).backend == "disabled"
    assert prefill(asked(*arguments, "--cuda-graph-backend-prefill", "full")).backend == "full"


@pytest.mark.parametrize(
    ("defaults", "field"),
    [
        ({"prefil": {}}, "defaults.prefil"),
        ({"prefill": "full"}, "defaults.prefill"),
        ({"prefill": {"backed": "full"}}, "defaults.prefill.backed"),
        ({"prefill": {"backend": "tc_piecewise"}}, "defaults.prefill.backend"),
        ({"prefill": {"backend": None}}, "defaults.prefill.backend"),
        ({"decode": {"max_bs": 0}}, "defaults.decode.max_bs"),
        ({"decode": {"max_bs": "8"}}, "defaults.decode.max_bs"),
        ({"decode": {"max_bs": True}}, "defaults.decode.max_bs"),
        ({"decode": {"bs": []}}, "defaults.decode.bs"),
        ({"decode": {"bs": [1, -2]}}, "defaults.decode.bs"),
        ({"decode": {"max_seq_len": 4096}}, "defaults.decode.max_seq_len"),
    ],
)
def test_wrong_defaults_name_their_place(defaults: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidLaunch) as caught:
        asked("--cuda-graph-max-bs", "8", defaults=defaults)  # even where the engine would not read the command line
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cuda-graph-max-bs-decode", "10000000000"),
        ("--cuda-graph-max-bs-prefill", "10000000000"),
        ("--cuda-graph-max-bs-decode", "1000000", "--disable-cuda-graph-padding"),
    ],
)
def test_sizes_beyond_any_server_are_no_question(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InvalidLaunch, match="capture size"):
        asked(*arguments)


@pytest.mark.parametrize("arguments", [("--model-path", "x"), ("--model=x",), ("--config", "a.yaml")])
def test_another_model_or_a_file_in_the_arguments_is_no_question(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InvalidLaunch) as caught:
        asked(*arguments)
    assert caught.value.field == "arguments"


def test_the_ledger_says_who_changed_what_and_why() -> None:
    predicted = asked("--tp-size", "4", "--pp-size", "2")
    decision = next(d for d in predicted.ledger if d.key == "prefill.backend")
    assert (decision.step, decision.before, decision.after) == ("graph-compatibility", "breakable", "disabled")
    assert "pipeline parallelism" in decision.why
    assert decision.source.startswith("arg_groups/cuda_graph_hook.py")


def test_a_given_option_without_bearing_is_listed() -> None:
    assert asked("--host", "0.0.0.0", "--tp-size", "2").prediction.unexamined == ("--host",)  # noqa: S104  only a word
