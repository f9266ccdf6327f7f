"""Breakable prefill graphs of multimodal models that nobody validated.

## What it does
Looks for a multimodal model whose architecture is not on the list that the release has for breakable prefill graphs.
A graph asked for by name gets a warning; where the engine switched its default off, a note says so.

## Why it is bad
The captured body embeds token ids only, while a multimodal model merges images or sound above it. Replays of models
that were not validated have returned wrong outputs and illegal memory accesses. Naming the backend skips the engine's
rule.

## What to do
Leave the prefill backend to the engine, or serve text only (`--language-model-only` where the release has it).

## Exceptions
Models that the release serves as text by default (Gemma 3, Llama 4 without `--enable-multimodal`) are not multimodal
here.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph


def check(examined: Examined) -> Iterator[Hit]:
    """A warning for a graph asked for by name, a note where the engine switched its default off."""
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "multimodal model" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if backend != "breakable" or not examined.named("prefill"):
        return
    model = examined.resolution.model
    if not model.is_multimodal or model.is_multimodal_breakable_cuda_graph_supported:
        return
    message = (
        f"A breakable prefill graph is asked for by name on {model.arch}, a multimodal architecture that SGLang "
        f"{examined.release} has not validated for it: replays can give wrong outputs or illegal memory accesses."
    )
    remedy = "Leave the prefill backend to the engine, which runs this model's prefill without graphs."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG206",
    slug="multimodal-prefill",
    title="breakable prefill graphs of a multimodal model outside the allow-list",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 23)),
    covers=("MM_NOT_ALLOWLISTED", "LOCK_BYPASSES_RULES"),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="likely",
    evidence=(
        report(30620, "multimodal prefill replay drops image inputs; models are let in one by one", pull=True),
        report(30872, "multimodal models outside the allow-list", pull=True),
        report(12838, "prefill graphs of multimodal models"),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, disable_breakable_cudagraph_if_incompatible",
            "multimodal prefill replay faults; validated architectures opt back in",
        ),
    ),
    check=check,
)
