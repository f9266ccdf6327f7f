"""Mutation test: each fault, in each kind of model that can have it, comes out as what it is, in both phases."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="the worker extra is not installed")

from api_tests.capture.inside import captured
from api_tests.capture.jobs import job
from api_tests.capture.replay.faults import FAULTS, PADDING, RESET, SHARED, Fault
from engine.capture.job import CaptureJob
from engine.models.facts import LayerKind


def small(*kinds: LayerKind, attention: str = "gqa", num_experts: int = 0) -> CaptureJob:
    planned = job(kinds, prefill_sizes=(2, 6), decode_sizes=(3,), allocation="per-phase", max_requests=3)
    shape = replace(
        planned.shape,
        attention=attention,
        num_experts=num_experts,
        experts_per_token=min(num_experts, 2),
        hidden_size=16,
        intermediate_size=16,
        vocab_size=64,
        head_dim=8,
        linear_key_dim=8,
        linear_value_dim=8,
        state_size=4,
        kv_lora_rank=8,
        rope_dim=4,
    )
    return replace(planned, shape=shape, replays=4)


MODELS: dict[str, CaptureJob] = {
    "llama": small("attention", "attention"),
    "qwen3-next": small("gdn", "attention"),
    "kimi-linear": small("kda", "attention", attention="mla"),
    "nemotron-h": small("mamba2", "moe", "attention", "mlp", num_experts=3),
    "falcon-h1": small("attention+mamba2"),
    "lfm2": small("shortconv", "attention"),
}


def has(model: CaptureJob, layers: str) -> bool:
    kinds = {part for kind in model.shape.layer_kinds for part in kind.split("+")}
    attending = {kind for kind in kinds if "attention" in kind}
    return bool(attending if layers == "attention" else kinds - attending - {"mlp", "moe"})


CASES = [
    pytest.param(name, fault, id=f"{name}-{fault}".replace(" ", "-"))
    for name, model in MODELS.items()
    for fault in FAULTS
    if fault.needs is None or has(model, fault.needs)
]


@pytest.mark.parametrize("name", MODELS)
def test_without_a_fault_every_model_is_ok(name: str) -> None:
    reports = captured(MODELS[name])
    assert {phase: report.outcome for phase, report in reports.items()} == {"prefill": "ok", "decode": "ok"}


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_is_found(name: str, fault: Fault) -> None:
    reports = captured(MODELS[name], fault.parts)
    assert (reports["prefill"].outcome, reports["decode"].outcome) == fault.outcome


def test_what_a_fault_looks_like_in_the_report() -> None:
    """Each shows where it is: in the state of bystanders, in outputs alone, in fresh requests alone."""
    by_kind = {(fault.kind, fault.name): fault for fault in FAULTS}
    replays = {
        key: [r for g in captured(MODELS["qwen3-next"], by_kind[key].parts)["prefill"].graphs for r in g.replays]
        for key in ((PADDING, "state"), (SHARED, "view"), (RESET, "inherited"))
    }
    intruding = [r for r in replays[PADDING, "state"] if r.intruded]
    assert intruding
    assert not any(r.ok for r in intruding)
    shared = [r for r in replays[SHARED, "view"] if not r.ok]
    assert shared
    assert all(r.max_rel > 1e-3 and r.state_rel <= 1e-4 and r.intruded == 0 for r in shared)
    inherited = {r.scenario for r in replays[RESET, "inherited"] if not r.ok}
    assert "exact size, fresh requests" in inherited
    assert "one continued request" not in inherited
