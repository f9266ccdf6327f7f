"""The policy of full prefill graphs on hybrid linear-attention models, from the launch to the verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from api_tests.material import material
from engine.launch import ModelRef
from engine.launch_forms import launch_from_arguments, launch_from_request
from engine.models.local import read_local
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import Checked, check, check_facts
from engine.sglang.releases import known_releases
from engine.verdict import Verdict

FULL = {"prefill": {"backend": "full"}}
HYBRIDS = {
    "tiiuae/falcon-mamba-7b": "Mamba",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "Mamba-2",
    "nvidia/Nemotron-H-8B-Base-8K": "Mamba-2",
    "tiiuae/Falcon-H1-7B-Instruct": "Mamba-2",
    "ibm-granite/granite-4.0-h-tiny": "Mamba-2",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "GDN",
    "Qwen/Qwen3.5-27B": "GDN",
    "jet-ai/Jet-Nemotron-2B": "GDN",
    "moonshotai/Kimi-K3": "KDA",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": "KDA",
    "LiquidAI/LFM2.5-VL-1.6B": "short convolution",
    "Zyphra/ZAYA1-8B": "short convolution",
}
"""Catalogue ids of each hybrid family; the families are those of the models' papers."""

LIGHTNING: dict[str, Any] = {
    "architectures": ["BailingMoeV2_5ForCausalLM"],
    "model_type": "bailing_hybrid",
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_hidden_layers": 20,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "layer_group_size": 5,
    "max_position_embeddings": 131072,
    "vocab_size": 157184,
}

resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def checked(body: Mapping[str, Any]) -> Checked:
    return check(launch_from_request(body), resolver)


def verdict(body: Mapping[str, Any]) -> Verdict:
    return checked(body).verdict


@pytest.mark.parametrize("model", HYBRIDS)
def test_unlocked_full_prefill_is_disabled_for_each_hybrid_family(model: str) -> None:
    answer = verdict({"model": model, "defaults": FULL})
    assert answer.verdict == "adjusted"
    (finding,) = [f for f in answer.findings if f.rule == "GG101"]
    assert finding.severity == "warning"
    assert HYBRIDS[model] in finding.message
    assert answer.effective is not None
    assert answer.effective.graph["prefill"].backend == "disabled"
    assert answer.effective.graph["decode"].backend == "full"
    (change,) = [d for d in answer.ledger if d.layer == "guard"]
    assert (change.key, change.before, change.after) == ("prefill.backend", "full", "disabled")


@pytest.mark.parametrize("model", HYBRIDS)
@pytest.mark.parametrize(
    "asked",
    [{"cuda_graph_config": FULL}, {"arguments": ["--cuda-graph-backend-prefill", "full"]}],
    ids=["json", "flag"],
)
def test_locked_full_prefill_is_rejected_for_each_hybrid_family(model: str, asked: dict[str, Any]) -> None:
    answer = verdict({"model": model, **asked})
    assert answer.verdict == "rejected"
    assert answer.effective is None
    finding = answer.findings[0]
    assert (finding.rule, finding.severity, finding.phase) == ("GG101", "error", "prefill")
    assert finding.covers == ("HYBRID_LINEAR_FULL_PREFILL",)
    written = "--cuda-graph-config" if "cuda_graph_config" in asked else "--cuda-graph-backend-prefill full"
    for part in (model, HYBRIDS[model], written, "decode"):
        assert part in finding.message
    assert finding.remedy
    assert finding.evidence


@pytest.mark.parametrize("model", HYBRIDS)
def test_the_suggested_launch_is_accepted(model: str) -> None:
    (finding,) = [f for f in verdict({"model": model, "cuda_graph_config": FULL}).findings if f.severity == "error"]
    assert finding.suggestion is not None
    assert verdict({"model": model, "arguments": list(finding.suggestion)}).verdict != "rejected"


@pytest.mark.parametrize("asked", [{"cuda_graph_config": FULL}, {"defaults": FULL}], ids=["locked", "unlocked"])
def test_lightning_attention_is_hybrid_too(asked: dict[str, Any]) -> None:
    answer = verdict({"model": {"config": LIGHTNING}, **asked})
    assert answer.verdict == ("rejected" if "cuda_graph_config" in asked else "adjusted")
    assert "lightning" in answer.findings[0].message


@pytest.mark.parametrize(
    "model",
    ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-8B", "openai/gpt-oss-20b", "mistralai/Mistral-7B-Instruct-v0.3"],
)
@pytest.mark.parametrize("asked", [{"cuda_graph_config": FULL}, {"defaults": FULL}], ids=["locked", "unlocked"])
def test_models_without_linear_attention_keep_full_prefill(model: str, asked: dict[str, Any]) -> None:
    answer = verdict({"model": model, **asked})
    assert answer.verdict == "accepted"
    assert not [f for f in answer.findings if f.rule == "GG101"]
    assert answer.effective is not None
    assert answer.effective.graph["prefill"].backend == "full"


def test_a_granite_hybrid_without_a_mamba_layer_is_no_hybrid() -> None:
    config = {
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "model_type": "granitemoehybrid",
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "mamba_d_state": 128,
        "layer_types": ["attention"] * 4,
        "max_position_embeddings": 32768,
        "vocab_size": 1000,
    }
    assert verdict({"model": {"config": config}, "cuda_graph_config": FULL}).verdict == "accepted"
    config["layer_types"] = ["mamba", "attention", "mamba", "attention"]
    assert verdict({"model": {"config": config}, "cuda_graph_config": FULL}).verdict == "rejected"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cuda-graph-backend-prefill", "disabled"],
        ["--cuda-graph-backend-prefill", "full", "--cuda-graph-config", '{"prefill": {"backend": "breakable"}}'],
        ["--cuda-graph-backend-decode", "full"],
        [],
    ],
)
def test_near_misses_stay_silent(arguments: list[str]) -> None:
    answer = verdict({"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "arguments": arguments})
    assert not [f for f in answer.findings if f.rule == "GG101"]


def test_public_reports_of_the_fault_and_their_near_misses() -> None:
    folder = material("models")
    wrong = []
    asked = 0
    for line in material("bugs", "cases.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["expect"].get("rule") != "HYBRID_LINEAR_FULL_PREFILL" or case["version"] not in known_releases():
            continue
        asked += 1
        reference = ModelRef(path=case["model"])
        launch = launch_from_arguments(reference, case["argv"], release=case["version"], gpu=case["gpu"])
        answer = check_facts(launch, read_local(folder / case["model"])).verdict
        hits = [f.severity for f in answer.findings if f.rule == "GG101"]
        if (case["expect"]["verdict"] == "rejected") != (hits == ["error"]):
            wrong.append((case["id"], answer.verdict, hits))
    assert asked > 0
    assert not wrong
