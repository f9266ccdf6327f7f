"""The rule in engines of every layout: who is refused, who is switched off, who is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from api_tests.sglang_plugin.engines import FakeEngine

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
NAMED: dict[str, Any] = {"model_path": NEXT, "cuda_graph_backend_prefill": "full"}
UNASKED: dict[str, Any] = {"model_path": NEXT, "platform": "full"}


def test_full_prefill_that_was_named_is_refused(any_engine: FakeEngine) -> None:
    ended = any_engine.launch(NAMED)
    assert len(ended.answers) == 1
    answer = ended.answers[0]
    assert answer.startswith("ValueError: graphgate GG101: --cuda-graph-backend-prefill full asks for full prefill")
    assert f"{NEXT} (Qwen3NextForCausalLM) is a hybrid linear-attention model" in answer
    assert "write --cuda-graph-backend-prefill disabled; decode graphs are not affected" in answer
    assert ended.said("WARNING") == []


def test_full_prefill_that_nobody_named_is_disabled_with_a_warning(any_engine: FakeEngine) -> None:
    ended = any_engine.launch(UNASKED)
    assert ended.answers == ["disabled"]
    warned = ended.said("WARNING")
    assert len(warned) == 1
    assert "came from the platform's defaults and are disabled" in warned[0]


def test_everything_else_is_left_alone(any_engine: FakeEngine) -> None:
    ended = any_engine.launch(
        {"model_path": "meta-llama/Llama-3.1-8B-Instruct", "cuda_graph_backend_prefill": "full"},
        {"model_path": "thinkingmachines/inkling", "cuda_graph_backend_prefill": "full"},
        {"model_path": "thinkingmachines/inkling", "platform": "full"},
        {"model_path": NEXT},
        {"model_path": NEXT, "cuda_graph_backend_prefill": "disabled"},
        {"model_path": "instance://next", "cuda_graph_backend_prefill": "full"},
    )
    assert ended.answers == ["full", "full", "full", "breakable", "disabled", "full"]
    assert ended.said("WARNING") == []


def test_a_model_of_another_package_is_treated_as_hybrid_with_a_warning(any_engine: FakeEngine) -> None:
    launch = {"model_path": "acme/hybrid", "cuda_graph_backend_prefill": "full"}
    ended = any_engine.launch(launch, SGLANG_EXTERNAL_MODEL_PACKAGE="acme_models")
    assert ended.answers[0].startswith("ValueError: graphgate GG101")
    said = "AcmeForCausalLM comes from acme_models, outside SGLang; it is treated as a hybrid linear-attention model."
    assert ended.said("WARNING") == [f"WARNING: graphgate: {said}"]


def test_warn_changes_nothing_and_says_everything(any_engine: FakeEngine) -> None:
    ended = any_engine.launch(NAMED, UNASKED, GRAPHGATE_SGLANG="warn")
    assert ended.answers == ["full", "full"]
    warned = ended.said("WARNING")
    assert len(warned) == 2
    assert all("GG101" in line and "Warn only: nothing is changed" in line for line in warned)


def test_off_sets_no_hooks(any_engine: FakeEngine) -> None:
    ended = any_engine.launch(NAMED, UNASKED, GRAPHGATE_SGLANG="off")
    assert ended.answers == ["full", "full"]
    assert ended.said("WARNING") + ended.said("INFO") == []
    assert ended.said("DEBUG") == ["DEBUG: graphgate: switched off by GRAPHGATE_SGLANG."]


def test_an_unknown_switch_is_said_and_taken_as_unset(newest: FakeEngine) -> None:
    ended = newest.launch(NAMED, GRAPHGATE_SGLANG="disable")
    assert ended.answers[0].startswith("ValueError: graphgate GG101")
    assert len(ended.said("WARNING")) == 1
    assert "'disable'; known are on, warn and off" in ended.said("WARNING")[0]


@pytest.mark.parametrize("written", ["ON", " on "])
def test_the_switch_is_free_of_case_and_space(newest: FakeEngine, written: str) -> None:
    ended = newest.launch(NAMED, GRAPHGATE_SGLANG=written)
    assert ended.answers[0].startswith("ValueError")
    assert ended.said("WARNING") == []


def test_one_line_says_that_it_is_on(any_engine: FakeEngine) -> None:
    said = any_engine.launch().said("INFO")
    assert len(said) == 1
    assert said[0].startswith("INFO: graphgate guards SGLang 0.5.")
    assert "(on, after sglang.srt." in said[0]
