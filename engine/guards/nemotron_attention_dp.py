"""Prefill graphs of Nemotron-H under attention data parallelism.

## What it does
Looks for Nemotron-H under attention data parallelism with a breakable or piecewise prefill graph that the engine
attempts, until 0.5.18.

## Why it is bad
Under attention data parallelism the Mamba layers call their kernels directly instead of through the break of the
graph: state indices of the capture batch are baked in, and replay reads freed memory (illegal memory access).

## What to do
Switch prefill graphs off, or launch with 0.5.19 or newer.

## Exceptions
From 0.5.19 on the layers go through the break, and most launches lose the graph while loading.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled

_ARCHITECTURES = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the Mamba layers would be captured whole."""
    if examined.prefill.backend not in ("breakable", "tc_piecewise") or not attn_dp_enabled(examined.args):
        return
    if examined.resolution.model.arch not in _ARCHITECTURES:
        return
    message = (
        f"{examined.prefill.backend} prefill graphs of Nemotron-H under attention data parallelism: SGLang "
        f"{examined.release} captures the Mamba layers whole there, and replay ends in an illegal memory access."
    )
    remedy = "Write --cuda-graph-backend-prefill disabled, or launch with 0.5.19 or newer."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG405",
    slug="nemotron-attention-dp",
    title="prefill graphs of Nemotron-H under attention data parallelism",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 18)),
    covers=("DP_ATTN_OTHER",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(
            34561,
            "illegal memory access of Nemotron-H under attention data parallelism with a prefill graph",
            pull=True,
        ),
        source(
            "0.5.18",
            "models/nemotron_h.py, NemotronHMambaDecoderLayer.forward",
            "the data-parallel branch calls the mixer directly; 0.5.19 goes through the break",
        ),
    ),
    check=check,
)
