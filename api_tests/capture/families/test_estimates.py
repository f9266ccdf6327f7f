"""What a capture says of the whole model: bytes against published figures, times by depth, and the memory budget."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from api_tests.capture.inside import captured
from api_tests.material import material
from engine.capture.estimate import ESTIMATE_RULE, Estimate
from engine.capture.fitting import needed_bytes, width_for
from engine.capture.job import CaptureJob, job_for
from engine.capture.options import CaptureOptions
from engine.capture.report import CaptureReport
from engine.capture.runners.estimating import kept_of_each_sort
from engine.capture.shape import WHOLE, ModelShape, scaled_shape
from engine.capture.supervisor import Supervisor
from engine.launch import Phase
from engine.models.catalogue import find
from engine.models.facts import ModelFacts
from engine.models.reading import facts_of
from engine.verdict import PhaseGraph

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


def known(model_id: str) -> ModelFacts:
    facts = find(model_id)
    assert facts is not None
    return facts


def whole(facts: ModelFacts) -> ModelShape:
    return scaled_shape(facts, len(facts.layer_kinds), width=WHOLE)


@pytest.mark.parametrize(
    ("model_id", "kilobytes"),
    [
        ("deepseek-ai/DeepSeek-V3.1", 70.272),
        ("Qwen/Qwen2.5-72B", 327.680),
        ("meta-llama/Meta-Llama-3.1-405B", 516.096),
    ],
)
def test_cache_bytes_a_token_are_those_published(model_id: str, kilobytes: float) -> None:
    # "Insights into DeepSeek-V3" (arXiv 2505.09343), table 1: key-value cache a token, BF16.
    shape = whole(known(model_id))
    kept = kept_of_each_sort(shape)
    assert sum(kept[sort].cache for sort in shape.sorts()) == round(kilobytes * 1000)


def test_state_bytes_a_request() -> None:
    # 36 delta-net layers: 32 value heads of 128 x 128 in 32 bits, and 3 tokens of 2 x 2048 + 4096 channels in 16 bits.
    shape = whole(known(NEXT))
    kept = kept_of_each_sort(shape)
    assert sum(kept[sort].state for sort in shape.sorts()) == 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)


@pytest.mark.parametrize(
    ("model_id", "billions"),
    [
        ("deepseek-ai/DeepSeek-V3.1", 671),  # the model's card
        ("openai/gpt-oss-120b", 116.83),  # the card, table 1
        ("openai/gpt-oss-20b", 20.91),
        ("MiniMaxAI/MiniMax-M1-80k", 456),
        ("Qwen/Qwen3-235B-A22B", 235),
        ("tiiuae/falcon-mamba-7b", 7.27),
        ("tiiuae/Falcon-H1-7B-Instruct", 7.59),
    ],
)
def test_the_whole_shape_has_the_parameters_of_the_published_model(model_id: str, billions: float) -> None:
    # Embeddings in and out counted; gpt-oss's figures too.
    assert parameters(whole(known(model_id))) / 1e9 == pytest.approx(billions, rel=2e-3)


@pytest.mark.parametrize(
    ("file", "billions"),
    [
        ("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-BF16.json", 120),
        ("Qwen--Qwen3-Next-80B-A3B-Instruct.json", 80),
        ("_partial/ai21labs--Jamba-v0.1.json", 52),
        ("tiiuae--Falcon-H1-0.5B-Base.json", 0.52),
    ],
)
def test_as_have_configs_of_the_material(file: str, billions: float) -> None:
    facts = facts_of(json.loads(material("models", *file.split("/")).read_text(encoding="utf-8")))
    assert parameters(whole(facts)) / 1e9 == pytest.approx(billions, rel=1e-2)


def parameters(shape: ModelShape) -> int:
    kept = kept_of_each_sort(shape)
    layers = sum(kept[sort].parameters for sort in shape.sorts())
    return layers + 2 * shape.vocab_size * shape.hidden_size


GRAPH: dict[Phase, PhaseGraph] = {
    "prefill": PhaseGraph(backend="full", bs=(8,), full_prefill_max_req=2),
    "decode": PhaseGraph(backend="full", bs=(2, 4)),
}


def planned(model_id: str, **options: object) -> CaptureJob:
    made = CaptureOptions.from_dict({"device": "cpu", "allocation": "per-phase", **options})
    return replace(job_for(id="e", facts=known(model_id), graph=GRAPH, options=made), replays=2)


def test_a_report_has_estimates_beside_what_was_emulated(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(planned(NEXT))
    assert report.claim == "emulated"
    assert report.estimate is not None
    assert report.estimate.rule == ESTIMATE_RULE
    assert Counter(report.estimate.whole) == {"gdn, experts": 36, "attention, experts": 12}
    assert Counter(report.estimate.captured) == {"gdn, experts": 3, "attention, experts": 1}
    assert report.estimate.cache_bytes_per_token == 24576
    assert report.estimate.state_bytes == 4 * report.estimate.state_bytes_per_request
    for phase, result in report.phases.items():
        deeper = report.estimate.phases[phase]
        assert [graph.size for graph in deeper] == [graph.size for graph in result.graphs]
        for graph, estimated in zip(result.graphs, deeper, strict=True):
            assert graph.replay_s < estimated.replay_s < graph.replay_s * 12 * 1.001
            assert estimated.bytes == graph.bytes * 12
    assert CaptureReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False))) == report
    assert Estimate.from_dict(report.estimate.to_dict()) == report.estimate


def test_a_report_of_before_there_were_estimates_is_read(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(replace(planned("meta-llama/Llama-3.1-8B", phases=["decode"]), whole=None))
    assert report.estimate is None
    old = report.to_dict()
    del old["estimate"]
    assert CaptureReport.from_dict(old) == report


@pytest.mark.parametrize("model_id", [NEXT, "meta-llama/Llama-3.1-8B", "tiiuae/falcon-mamba-7b"])
def test_a_budget_on_a_gpu_keeps_as_much_of_the_dimensions_as_it_holds(model_id: str) -> None:
    facts, small = known(model_id), scaled_shape(known(model_id))
    taken = []
    for mib in (64, 1024, 16384, 10**9):
        options = CaptureOptions(device="cuda", memory_mib=mib)
        width = width_for(facts, options, tokens=512, requests=16)
        shape = scaled_shape(facts, width=width)
        assert shape.sorts() == small.sorts()
        taken.append(needed_bytes(shape, tokens=512, requests=16))
        assert taken[-1] <= mib * 2**20 / 2 or width == 1
    assert taken == sorted(taken)
    assert shape == scaled_shape(facts, width=WHOLE)
    assert small.hidden_size < shape.hidden_size == facts.hidden_size


@pytest.mark.parametrize("model_id", ["moonshotai/Kimi-Linear-48B-A3B-Instruct", "ibm-granite/granite-4.0-h-tiny"])
def test_a_wider_model_replays_as_exactly(model_id: str) -> None:
    job = planned(model_id)
    wide = scaled_shape(known(model_id), width=4)
    assert wide.hidden_size == 4 * job.shape.hidden_size
    reports = captured(replace(job, shape=wide))
    assert {phase: report.outcome for phase, report in reports.items()} == {"prefill": "ok", "decode": "ok"}


def test_without_a_gpu_or_a_budget_the_bounds_stay() -> None:
    facts = known(NEXT)
    for options in (CaptureOptions(device="cpu", memory_mib=10**6), CaptureOptions(device="cuda")):
        assert width_for(facts, options, tokens=512, requests=16) == 1


def test_needed_bytes_hold_the_weights_and_pools_that_a_model_has() -> None:
    from engine.capture.models.decoder import Decoder

    for model_id in (NEXT, "meta-llama/Llama-3.1-8B", "openai/gpt-oss-20b", "nvidia/Nemotron-H-8B-Base-8K"):
        for width in (1, 4, 16):
            shape = scaled_shape(known(model_id), width=width)
            with torch.device("meta"):
                model = Decoder(shape)
            weights = 2 * sum(parameter.numel() for parameter in model.parameters())
            assert weights <= needed_bytes(shape, tokens=64, requests=4)
