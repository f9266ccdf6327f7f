"""Recurrent states that a prefill graph forgets to save.

## What it does
Looks for a state-carrying model with the radix cache's extra buffer, drafting and a breakable prefill graph until
0.5.17; and, until 0.5.16, for Mamba-2 models with the extra buffer and decode graphs.

## Why it is bad
With drafting the prefill graph has no buffers for the states to save, and saving is skipped in silence: the radix
cache then serves a wrong state to every later request with that prefix. In decode graphs the saved state of a Mamba-2
model goes to the buffer's stale tail. Outputs are wrong, with HTTP 200.

## What to do
Switch prefill graphs off, or the radix cache (`--disable-radix-cache`), or launch with 0.5.18 or newer.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.steps.mamba import extra_buffer


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for each graph that loses tracked states."""
    args = examined.args
    if not extra_buffer(args):
        return
    carrying = examined.resolution.model.state_carrying
    if carrying is None:
        return
    if examined.prefill.backend in ("breakable", "tc_piecewise") and args.speculative_algorithm is not None:
        message = (
            f"Prefill graphs {examined.prefill.backend} with drafting and the radix cache's extra buffer: SGLang "
            f"{examined.release} does not save this model's recurrent states in replay, and later requests with the "
            "same prefix get a wrong one."
        )
        remedy = "Write --cuda-graph-backend-prefill disabled, or --disable-radix-cache."
        suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
        yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion, phase="prefill"))
    if not examined.since(0, 5, 17) and carrying.family == "mamba2" and examined.decode.backend != "disabled":
        message = (
            f"Decode graphs of a Mamba-2 model with the radix cache's extra buffer: SGLang {examined.release} saves "
            "tracked states to the wrong slots, and prefix hits are answered wrongly."
        )
        remedy = "Write --mamba-radix-cache-strategy no_buffer, or launch with 0.5.17 or newer."
        yield Hit(finding=RULE.finding("warning", message, remedy, phase="decode"))


RULE = Rule(
    id="GG503",
    slug="mamba-track-prefill",
    title="prefill graphs that skip saving recurrent states for the radix cache",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 17)),
    covers=("MAMBA_RADIX_STATE",),
    phase=None,
    backend=None,
    severity="warning",
    confidence="certain",
    evidence=(
        report(32606, "with drafting, a replayed prefill graph skips state tracking", pull=True),
        report(32555, "decode under graphs saves tracked states to the buffer's stale tail", pull=True),
        source(
            "0.5.17",
            "model_executor/runner/prefill_cuda_graph_runner.py, _is_mamba_track_enabled",
            "tracking is off with drafting; 0.5.18 drops the condition",
        ),
        source(
            "0.5.16",
            "layers/attention/hybrid_linear_attn_backend.py",
            "the whole track buffer is handed on; 0.5.17 hands its filled front",
        ),
    ),
    check=check,
)
