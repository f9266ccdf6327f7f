"""Every family captures and replays in both phases; real models do, or are refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

from api_tests.capture.inside import captured
from api_tests.capture.jobs import job
from engine.capture.models.mixer import UnsupportedLayer
from engine.capture.options import Allocation
from engine.capture.style import Activation, Routing, Style
from engine.launch import Phase
from engine.models.facts import LayerKind

RECURRENT: list[tuple[LayerKind, ...]] = [
    ("gdn", "attention"),
    ("kda", "attention"),
    ("mamba2", "moe", "attention", "mlp"),
    ("mamba", "mamba"),
    ("lightning", "attention"),
    ("shortconv", "attention"),
    ("attention+mamba2", "attention+mamba2"),
]
PAGED: list[tuple[LayerKind, ...]] = [("sliding_attention", "attention"), ("chunked_attention", "attention")]


@pytest.mark.parametrize("kinds", RECURRENT, ids="-".join)
def test_recurrent_families(kinds: tuple[LayerKind, ...]) -> None:
    exact = captured(job(kinds, allocation="per-phase", linear_groups=2))
    assert {phase: report.outcome for phase, report in exact.items()} == {"prefill": "ok", "decode": "ok"}
    owned = captured(job(kinds, linear_groups=2))
    assert {phase: report.outcome for phase, report in owned.items()} == {"prefill": "guard_refused", "decode": "ok"}


@pytest.mark.parametrize(
    ("variant", "kinds"),
    [
        ("jet", ("gdn", "sliding_attention")),
        ("bailing", ("lightning", "attention")),
        ("zaya", ("attention+shortconv", "attention+shortconv")),
        ("inkling", ("attention+shortconv", "attention+shortconv")),
        ("eagle", ("rwkv", "rwkv")),
    ],
)
@pytest.mark.parametrize("prefill", ["full", "breakable"])
def test_kernels_of_one_model(variant: str, kinds: tuple[LayerKind, ...], prefill: str) -> None:
    def outcomes(allocation: Allocation) -> dict[Phase, str]:
        planned = job(kinds, prefill=prefill, allocation=allocation)
        reports = captured(replace(planned, shape=replace(planned.shape, style=Style(variant=variant))))
        return {phase: report.outcome for phase, report in reports.items()}

    assert outcomes("per-phase") == {"prefill": "ok", "decode": "ok"}
    refused = "guard_refused" if prefill == "full" else "ok"
    assert outcomes("decode-owned") == {"prefill": refused, "decode": "ok"}


ROUTINGS = [
    Routing(normalise=False),
    Routing(logit_bias=True, shared="gated"),
    Routing(scoring="sigmoid", selection_bias=True, groups=2, top_groups=1, scale=2.5, shared="plain"),
]


@pytest.mark.parametrize("routing", ROUTINGS, ids=lambda routing: routing.scoring + "-" + routing.shared)
@pytest.mark.parametrize("activation", ["swiglu", "clamped_swiglu", "relu2"])
def test_experts_have_static_shapes(routing: Routing, activation: Activation) -> None:
    planned = job(("attention", "moe"), prefill_sizes=(8,), decode_sizes=(4,), num_experts=4, experts_per_token=2)
    style = Style(routing=routing, activation=activation, sinks=True, output_gate=True, head_norm=True)
    reports = captured(replace(planned, shape=replace(planned.shape, style=style, expert_hidden=24)))
    assert {phase: report.outcome for phase, report in reports.items()} == {"prefill": "ok", "decode": "ok"}


@pytest.mark.parametrize("kinds", PAGED, ids="-".join)
@pytest.mark.parametrize("prefill", ["full", "breakable", "tc_piecewise"])
def test_paged_families(kinds: tuple[LayerKind, ...], prefill: str) -> None:
    reports = captured(job(kinds, prefill=prefill))
    assert {phase: report.outcome for phase, report in reports.items()} == {"prefill": "ok", "decode": "ok"}


def test_latent_attention_beside_kda() -> None:
    planned = job(("kda", "attention"), allocation="per-phase", num_experts=4, experts_per_token=2)
    reports = captured(replace(planned, shape=replace(planned.shape, attention="mla")))
    assert {phase: report.outcome for phase, report in reports.items()} == {"prefill": "ok", "decode": "ok"}


@pytest.mark.parametrize("kinds", [("rwkv",), ("attention+shortconv",), ("attention+gdn",)])
def test_no_kernel_stands_in_for_another(kinds: tuple[LayerKind, ...]) -> None:
    with pytest.raises(UnsupportedLayer, match="does not stand another in"):
        captured(job(kinds))


def test_an_architecture_whose_layers_differ_is_refused() -> None:
    planned = job(("mamba2", "attention+mamba2"))
    with pytest.raises(UnsupportedLayer, match="several layers share"):
        captured(replace(planned, shape=replace(planned.shape, architecture="Zamba2ForCausalLM")))
