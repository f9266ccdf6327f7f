"""What becomes of a resolved prefill graph while the model loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from api_tests.material import ROOT, material
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models import catalogue
from engine.models.reading import facts_of
from engine.sglang.predict import Predicted, predict


def _ask(config: dict[str, Any], *arguments: str, release: str = "0.5.23", gpu: str = "H200") -> Predicted:
    launch = Launch(model=ModelRef(config=config), release=release, gpu=gpu, arguments=arguments)
    return predict(launch, facts_of(config), gpu_named(gpu))


def _of(model: str, *arguments: str, release: str = "0.5.23", gpu: str = "H200") -> Predicted:
    facts = catalogue.find(model)
    assert facts is not None
    launch = Launch(model=ModelRef(id=model), release=release, gpu=gpu, arguments=arguments)
    return predict(launch, facts, gpu_named(gpu))


def _outcome(predicted: Predicted) -> str | None:
    load = predicted.prediction.load
    return load.prefill if load else None


NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
QWEN = "Qwen/Qwen3-8B"


def test_built_models_are_attempted_or_dropped_as_the_engine_does() -> None:
    wrong, asked = [], 0
    for line in material("golden", "load.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        config = json.loads(material("models", case["model"]).read_text(encoding="utf-8"))
        for backend, expected in case["by_backend"].items():
            got = _outcome(
                _ask(config, "--cuda-graph-backend-prefill", backend, release=case["version"], gpu=case["gpu"])
            )
            asked += 1
            if got != expected:
                wrong.append((case["model"], backend, expected, got))
    assert asked > 300
    assert not wrong


def test_every_family_is_attempted_or_dropped_as_the_engine_does() -> None:
    cases = json.loads((Path(__file__).parent / "expectations.json").read_text(encoding="utf-8"))
    configs = ROOT / "api_tests/conformance/configs"
    assert len(cases) > 40
    for case in cases:
        config = json.loads((configs / f"{case['model']}.json").read_text(encoding="utf-8"))
        for backend, expected in case["prefill"].items():
            asked = _ask(config, "--cuda-graph-backend-prefill", backend, release=case["release"], gpu=case["gpu"])
            assert _outcome(asked) == expected, (case, backend)


def test_layers_of_experts_pass_under_breakable_on_compute_capability_12_0_from_0_5_23_on() -> None:
    breakable = ("--cuda-graph-backend-prefill", "breakable")
    assert _outcome(_of(NEMOTRON, *breakable)) == "dropped"
    assert _outcome(_of(NEMOTRON, *breakable, gpu="RTX5090")) == "attempted"
    assert _outcome(_of(NEMOTRON, *breakable, release="0.5.22", gpu="RTX5090")) == "dropped"
    assert _outcome(_of(NEMOTRON, "--cuda-graph-backend-prefill", "full", gpu="RTX5090")) == "dropped"


def test_what_is_dropped_stands_in_the_ledger_and_what_is_disabled_does_not() -> None:
    dropped = _of(NEMOTRON, "--cuda-graph-backend-prefill", "breakable")
    decision = next(d for d in dropped.ledger if d.key == "prefill.load")
    assert (decision.before, decision.after, decision.layer) == ("attempted", "dropped", "engine")
    assert "moe" in decision.why
    disabled = _of(NEMOTRON, "--cuda-graph-backend-prefill", "disabled")
    assert _outcome(disabled) == "disabled"
    assert all(d.key != "prefill.load" for d in disabled.ledger)


def test_a_refused_launch_loads_nothing() -> None:
    assert _outcome(_of(QWEN, "--no-such-option")) is None


def test_pipeline_stages_were_counted_against_the_whole_model_until_0_5_18() -> None:
    asked = ("--pp-size", "2", "--cuda-graph-backend-prefill", "breakable")
    assert _outcome(_of(QWEN, *asked, release="0.5.17")) == "dropped"
    assert _outcome(_of(QWEN, *asked, release="0.5.19")) == "attempted"


def test_adapters_under_attention_data_parallelism_prefill_eagerly() -> None:
    adapters = ("--enable-lora", "--max-lora-rank", "16", "--lora-target-modules", "q_proj")
    assert _outcome(_of(QWEN, *adapters)) == "attempted"
    assert _outcome(_of(QWEN, *adapters, "--tp-size", "2", "--dp-size", "2", "--enable-dp-attention")) == "dropped"


def test_a_capture_size_has_to_fit_what_requests_can_hold() -> None:
    small = ("--context-length", "256", "--max-running-requests", "4")
    assert _outcome(_of(QWEN, *small, "--cuda-graph-bs-prefill", "4096", "8192")) == "dropped"
    assert _outcome(_of(QWEN, *small, "--cuda-graph-bs-prefill", "512", "8192")) == "attempted"
