"""Graphs that the engine switches off by itself.

## What it does
Says in a note which option or which property of the model made the engine switch a phase's graphs off while the
arguments resolved, where no other rule says so.

## Why it is bad
Nothing breaks. The phase runs eagerly, which is slower than the launch may have been sized for, and the engine says
so in one line of a long log, or not at all.

## What to do
Keep it, or change the option that the note names. Write the backend `disabled` by name, so that the launch says what
runs.

## Exceptions
Switches of the operator's own are no finding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source

_COVERED = {
    "attention": "FORCED_BOTH_DISABLED",
    "multi-item-scoring": "FORCED_BOTH_DISABLED",
    "other-validations": "FORCED_BOTH_DISABLED",
    "kv-sharding": "FORCED_BOTH_DISABLED",
    "graph-roles": "PD_ROLE",
    "model": "SPECIAL_ARCH_DEFAULTS",
    "dllm": "SPECIAL_ARCH_DEFAULTS",
    "unified-memory": "FULL_PREFILL_ATTN_BACKEND",
    "layernorm-sp": "SPECIAL_ARCH_DEFAULTS",
}
"""The fault's name by the step that switched; steps of other rules are not here."""

_REASONS = {
    "tc_piecewise": "TC_PIECEWISE_LEGACY",
    "LoRA": "LORA_PREFILL_GRAPH",
    "NemotronH": "DP_ATTN_OTHER",
    "DP attention": "DP_ATTN_OTHER",
}
"""The fault's name by a word of the reason, for the engine's list of incompatibilities."""


def check(examined: Examined) -> Iterator[Hit]:
    """A note for each phase that the engine switched off."""
    for phase, decision in examined.switched_off.items():
        if "context parallel" in decision.why:
            continue  # GG204 says so
        name = _COVERED.get(decision.step)
        if name is None and decision.step == "graph-compatibility":
            name = next((fault for word, fault in _REASONS.items() if word in decision.why), None)
        if name is None:
            continue
        message = f"SGLang {examined.release} switches {phase} graphs off: {decision.why}."
        remedy = f"Write --cuda-graph-backend-{phase} disabled, so that the launch says what runs."
        finding = RULE.finding("note", message, remedy, phase=phase)
        yield Hit(finding=dataclasses.replace(finding, covers=(name,)))


RULE = Rule(
    id="GG901",
    slug="switched-off",
    title="graphs that the engine switches off while the arguments resolve",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=(
        "FORCED_BOTH_DISABLED",
        "PD_ROLE",
        "SPECIAL_ARCH_DEFAULTS",
        "TC_PIECEWISE_LEGACY",
        "LORA_PREFILL_GRAPH",
        "DP_ATTN_OTHER",
        "FULL_PREFILL_ATTN_BACKEND",
    ),
    phase=None,
    backend=None,
    severity="note",
    confidence="certain",
    evidence=(
        report(25921, "roles of disaggregation and their graphs", pull=True),
        report(33723, "features that switch graphs off", pull=True),
        source(
            "0.5.23",
            "arg_groups/attention_hook.py, handle_attention_backend_compatibility",
            "attention backends that cannot be captured",
        ),
        source(
            "0.5.23", "arg_groups/cuda_graph_hook.py, apply_cuda_graph_disaggregation_roles", "roles of disaggregation"
        ),
    ),
    check=check,
)
