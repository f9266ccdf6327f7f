"""The plan: which graphs, in which order, what has none; the reserve is the engine's own formula."""

from __future__ import annotations

from typing import Any

from engine.launch_forms import launch_from_request
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import check

resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def plan(*arguments: str, model: str = "meta-llama/Llama-3.1-8B-Instruct", **body: Any) -> dict[str, Any]:
    request = {"model": model, "arguments": list(arguments), **body}
    found = check(launch_from_request(request), resolver).verdict.to_dict()["plan"]
    assert isinstance(found, dict)
    return found


def test_largest_first_and_covering() -> None:
    decode = plan("--cuda-graph-bs-decode", "4", "1", "2", "--max-running-requests", "4")["decode"]
    assert decode["sizes"] == [4, 2, 1]
    assert (decode["graphs"], decode["covers"]) == (3, 4)
    assert decode["eager"].startswith("nothing")


def test_batches_beyond_the_largest_graph_run_eagerly() -> None:
    found = plan(
        "--cuda-graph-max-bs-decode", "8", "--max-running-requests", "64", "--cuda-graph-max-bs-prefill", "512"
    )
    assert found["decode"]["eager"] == "batches of 9 to 64 requests (--max-running-requests)"
    assert found["prefill"]["eager"] == "batches of 513 to 8192 tokens (--chunked-prefill-size)"


def test_the_lower_end_of_memory_is_the_engines_reserve() -> None:
    found = plan("--cuda-graph-max-bs-decode", "256", "--cuda-graph-bs-prefill", "128", "256")
    assert found["decode"]["memory"]["low"] == 512
    assert found["prefill"]["memory"]["low"] == 16
    for phase in found.values():
        assert phase["memory"]["low_source"]
        assert phase["time"]["low"] <= phase["time"]["high"]


def test_a_phase_without_graphs_says_that_all_of_it_runs_eagerly() -> None:
    found = plan("--disable-decode-cuda-graph", "--cuda-graph-backend-prefill", "disabled")
    assert [(p["graphs"], p["eager"]) for p in found.values()] == [(0, "every decode batch"), (0, "every prefill")]


def test_a_graph_dropped_while_loading_is_none() -> None:
    found = plan(model="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert found["prefill"]["graphs"] == 0
    assert "dropped while the model loads" in found["prefill"]["eager"]


def test_what_a_guard_switches_off_is_not_planned() -> None:
    found = plan(model="Qwen/Qwen3-Next-80B-A3B-Instruct", defaults={"prefill": {"backend": "full"}})
    assert (found["prefill"]["backend"], found["prefill"]["graphs"]) == ("disabled", 0)


def test_a_refused_launch_has_no_plan() -> None:
    request = {"model": "meta-llama/Llama-3.1-8B-Instruct", "arguments": ["--no-such-option"]}
    answer = check(launch_from_request(request), resolver).verdict
    assert answer.prediction.outcome == "refused"
    assert answer.to_dict()["plan"] is None
