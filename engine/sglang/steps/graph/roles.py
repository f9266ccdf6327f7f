"""Disaggregation: a prefill server captures no decode graph, a decode server no prefill graph, unless told to."""

from __future__ import annotations

from engine.launch import Phase
from engine.sglang.resolution import Resolution

_IDLE: dict[str, Phase] = {"prefill": "decode", "decode": "prefill"}


def run(r: Resolution) -> None:
    """Switch off the graph of the phase that this role never runs."""
    phase = _IDLE.get(r.args.disaggregation_mode)
    if phase is not None and (phase, "backend") not in r.locked:
        r.set_graph(phase, "backend", "disabled", f"a {r.args.disaggregation_mode} server runs no {phase} batches")
