"""Real models, one or more a family, through both phases and both allocation orders, as their config.json has them.

Under ``per-phase`` full prefill of every one of them is captured and replays as eager does; under ``decode-owned``, the
order of SGLang 0.5.15 to 0.5.23, full prefill of every hybrid meets the guard, and decode is sound all the same. The
configs are those of the optional material, and the packaged catalogue's, which are always there.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="the worker extra is not installed")

from api_tests.capture.inside import captured
from api_tests.material import material
from engine.capture.job import CaptureJob, job_for
from engine.capture.options import Allocation, CaptureOptions
from engine.launch import Phase
from engine.models.catalogue import find
from engine.models.facts import ModelFacts
from engine.models.reading import facts_of
from engine.verdict import PhaseGraph

FILES = {
    "meta-llama--Llama-3.1-8B.json": "none",
    "deepseek-ai--DeepSeek-V3.json": "none",
    "openai--gpt-oss-20b.json": "none",
    "Qwen--Qwen3-30B-A3B.json": "none",
    "Qwen--Qwen3-Next-80B-A3B-Instruct.json": "gdn",
    "Qwen--Qwen3.5-35B-A3B.json": "gdn",
    "jet-ai--Jet-Nemotron-2B.json": "gdn",
    "moonshotai--Kimi-K3.json": "kda",
    "_partial/moonshotai--Kimi-Linear-48B-A3B-Instruct.json": "kda",
    "nvidia--Nemotron-H-8B-Base-8K.json": "mamba2",
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-BF16.json": "mamba2",
    "_partial/ibm-granite--granite-4.0-h-tiny.json": "mamba2",
    "tiiuae--Falcon-H1-0.5B-Base.json": "mamba2",
    "_partial/ibm-ai-platform--Bamba-9B.json": "mamba2",
    "tiiuae--falcon-mamba-7b.json": "mamba",
    "_partial/ai21labs--Jamba-v0.1.json": "mamba",
    "MiniMaxAI--MiniMax-M1-80k.json": "lightning",
    "mlx-community--Ring-mini-linear-2.0-4bit.json": "lightning",
    "LiquidAI--LFM2.5-VL-1.6B.json": "shortconv",
    "Zyphra--ZAYA1-8B.json": "shortconv",
    "_partial/thinkingmachines--Inkling-Small.json": "shortconv",
    "RWKV--rwkv-5-world-3b.json": "rwkv",
}
"""File of the material -> the recurrent state that some of its layers carry."""

IDS = {
    "meta-llama/Llama-3.1-8B": "none",
    "deepseek-ai/DeepSeek-V3.1": "none",
    "openai/gpt-oss-20b": "none",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "gdn",
    "Qwen/Qwen3.5-35B-A3B": "gdn",
    "jet-ai/Jet-Nemotron-2B": "gdn",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": "kda",
    "nvidia/Nemotron-H-8B-Base-8K": "mamba2",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "mamba2",
    "ibm-granite/granite-4.0-h-tiny": "mamba2",
    "tiiuae/Falcon-H1-7B-Instruct": "mamba2",
    "tiiuae/falcon-mamba-7b": "mamba",
    "MiniMaxAI/MiniMax-M1-80k": "lightning",
    "mlx-community/Ring-mini-linear-2.0-4bit": "lightning",
    "LiquidAI/LFM2-8B-A1B": "shortconv",
    "Zyphra/ZAYA1-8B": "shortconv",
}
GRAPH: dict[Phase, PhaseGraph] = {
    "prefill": PhaseGraph(backend="full", bs=(12,), full_prefill_max_req=3),
    "decode": PhaseGraph(backend="full", bs=(3,)),
}


def planned(facts: ModelFacts, allocation: Allocation) -> CaptureJob:
    options = CaptureOptions(device="cpu", allocation=allocation)
    return replace(job_for(id="model", facts=facts, graph=GRAPH, options=options), replays=3)


def in_both_orders(facts: ModelFacts, hybrid: str) -> None:
    assert facts.hybrid == hybrid
    job = planned(facts, "per-phase")
    assert set(job.shape.layer_kinds) == set(facts.layer_kinds)
    exact = captured(job)
    assert {phase: report.outcome for phase, report in exact.items()} == {"prefill": "ok", "decode": "ok"}
    for report in exact.values():
        assert report.graphs
        for graph in report.graphs:
            assert max(graph.max_rel, graph.state_rel) <= graph.tolerance
            assert len(graph.replays) == 3
    owned = captured(planned(facts, "decode-owned"))
    prefill = "ok" if hybrid == "none" else "guard_refused"
    assert {phase: report.outcome for phase, report in owned.items()} == {"prefill": prefill, "decode": "ok"}


@pytest.mark.parametrize("file", FILES)
def test_a_config_of_the_material(file: str) -> None:
    config = json.loads(material("models", *file.split("/")).read_text(encoding="utf-8"))
    in_both_orders(facts_of(config), FILES[file])


@pytest.mark.parametrize("model_id", IDS)
def test_a_model_of_the_catalogue(model_id: str) -> None:
    facts = find(model_id)
    assert facts is not None
    in_both_orders(facts, IDS[model_id])
