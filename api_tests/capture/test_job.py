"""What goes into a worker: options, the scaled model, the sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from engine.capture.job import CPU_LARGEST, CaptureJob, CaptureOptions, PhasePlan, choose_sizes, job_for
from engine.capture.shape import scaled_shape
from engine.errors import InvalidLaunch
from engine.launch import Phase
from engine.models.facts import LayerKind, LinearShape, ModelFacts
from engine.verdict import PhaseGraph

PERIOD: tuple[LayerKind, ...] = ("gdn", "gdn", "gdn", "attention")
# As in the config.json of Qwen/Qwen3-Next-80B-A3B-Instruct.
QWEN3_NEXT = ModelFacts(
    model_id="Qwen/Qwen3-Next-80B-A3B-Instruct",
    source="inline",
    architectures=("Qwen3NextForCausalLM",),
    num_layers=48,
    layer_kinds=PERIOD * 12,
    attention="gqa",
    hybrid="gdn",
    hidden_size=2048,
    num_attention_heads=16,
    num_key_value_heads=2,
    head_dim=256,
    num_experts=512,
    experts_per_token=10,
    linear=LinearShape(num_key_heads=16, num_value_heads=32, key_head_dim=128, value_head_dim=128, conv_kernel=4),
)
GRAPH: dict[Phase, PhaseGraph] = {
    "prefill": PhaseGraph(backend="full", bs=(4, 8, 64, 4096), full_prefill_max_req=16),
    "decode": PhaseGraph(backend="full", bs=(1, 2, 4, 8, 16, 256)),
}


def test_scaling_keeps_pattern_and_ratios() -> None:
    shape = scaled_shape(QWEN3_NEXT)
    assert shape.layer_kinds == PERIOD
    assert shape.linear_value_heads == 2 * shape.linear_key_heads
    assert shape.conv_kernel == 4
    assert shape.num_heads > shape.num_kv_heads
    assert 0 < shape.experts_per_token < shape.num_experts <= 4
    assert scaled_shape(QWEN3_NEXT, layers=2).layer_kinds == ("gdn", "attention")
    assert scaled_shape(QWEN3_NEXT, layers=9).layer_kinds == (PERIOD * 3)[:9]


def test_a_job_carries_the_plan_and_survives_its_file() -> None:
    job = job_for(id="c1", facts=QWEN3_NEXT, graph=GRAPH, options=CaptureOptions(sizes=(4, 8)), chunked_prefill_size=64)
    prefill, decode = job.plan("prefill"), job.plan("decode")
    assert prefill is not None
    assert decode is not None
    assert (prefill.backend, prefill.sizes, prefill.max_requests) == ("full", (4, 8, 64), 16)
    assert decode.sizes == (1, 2, 4, 8, 16, 256)
    assert CaptureJob.from_json(job.to_json()) == job


@pytest.mark.parametrize(("chunk", "slots"), [(8192, 16), (2048, 4), (512, 1), (100, 1), (-1, 4), (None, 4)])
def test_request_slots_follow_the_chunk_where_the_plan_names_none(chunk: int | None, slots: int) -> None:
    # SGLang 0.5.23: max(chunked_prefill_size // 512, 1).
    graph: dict[Phase, PhaseGraph] = {"prefill": PhaseGraph(backend="full", bs=(4,))}
    job = job_for(id="c1", facts=QWEN3_NEXT, graph=graph, options=CaptureOptions(), chunked_prefill_size=chunk)
    prefill = job.plan("prefill")
    assert prefill is not None
    assert prefill.max_requests == slots


def test_only_the_phases_asked_for() -> None:
    job = job_for(id="c1", facts=QWEN3_NEXT, graph=GRAPH, options=CaptureOptions(phases=("decode",)))
    assert [plan.phase for plan in job.plans] == ["decode"]


@pytest.mark.parametrize("text", ["{}", '{"version": 1}', "[]", "x"])
def test_a_job_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|Expecting"):
        CaptureJob.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phases", []),
        ("phases", ["decode", "decode"]),
        ("phases", "decode"),
        ("phases", ["draft"]),
        ("allocation", "shared"),
        ("sizes", 0),
        ("sizes", []),
        ("sizes", [4, -1]),
        ("sizes", True),
        ("sizes", [1.5]),
        ("device", "tpu"),
        ("memory_mib", 0),
        ("memory_mib", "many"),
        ("timeout_s", 0),
        ("timeout_s", 1e9),
        ("timeout_s", "soon"),
        ("layers", 0),
        ("layers", 2.5),
        ("colour", "red"),
    ],
)
def test_options_name_the_field_that_is_wrong(field: str, value: Any) -> None:
    with pytest.raises(InvalidLaunch) as info:
        CaptureOptions.from_dict({field: value})
    assert info.value.field == f"capture.{field}"
    assert info.value.remedy


def test_options_round_trip() -> None:
    options = CaptureOptions.from_dict({"sizes": [8, 4], "phases": ["decode"], "timeout_s": 5, "layers": None})
    assert options == CaptureOptions(sizes=(8, 4), phases=("decode",), timeout_s=5)
    assert CaptureOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


@pytest.mark.parametrize(
    ("sizes", "asked", "on_cpu", "chosen"),
    [
        ((4, 8, 16, 32, 64, 128), None, True, (4, 16, 64)),
        ((4, 8, 16, 32, 64, 128), None, False, (4, 8, 16, 32, 64, 128)),
        ((4, 8, 16, 32, 64, 128), 2, False, (4, 128)),
        ((4, 8, 16, 32, 64, 128), 1, True, (64,)),
        ((4, 8), 5, True, (4, 8)),
        ((1024, 2048), None, True, (1024,)),
        ((4, 8), (96, 7), True, (7, 96)),
        (tuple(range(256, 8193, 256)), None, False, (256, 512, 768, 1024, 1280, 1536, 1792, 2048)),
        ((4096,), None, False, (4096,)),
    ],
)
def test_sizes(sizes: tuple[int, ...], asked: Any, on_cpu: bool, chosen: tuple[int, ...]) -> None:
    plan = PhasePlan(phase="prefill", backend="full", sizes=sizes)
    assert CPU_LARGEST["prefill"] == 64
    assert choose_sizes(plan, CaptureOptions(sizes=asked), on_cpu=on_cpu) == chosen


def test_what_the_service_imports_needs_no_torch() -> None:
    program = (
        "import sys, engine.capture.job, engine.capture.report, engine.capture.supervisor;"
        "sys.exit(any(name.split('.')[0] in ('torch', 'transformers', 'pydantic') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
