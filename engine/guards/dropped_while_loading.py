"""Prefill graphs that the engine gives up while the model loads.

## What it does
Looks for a launch whose prefill graphs resolve to a backend, and that the engine then drops while it loads the model:
because some layers have no attention that the graph could stop at, because the model class holds no language model or
no decoder layers where the engine looks, because LoRA adapters cannot run inside the graph, or because no capture size
is set or fits.

## Why it is bad
The engine says so in one line of its log, at level INFO for layers, and goes on: every prefill runs eagerly, launch
after launch, while the configuration still names the backend. Nothing is wrong with the tokens; the throughput that
the graph was meant to bring is missing, and memory was planned for it.

## What to do
Name the backend `disabled`, so that the launch says what it does, or change what the message names.

## Exceptions
Full prefill on a hybrid linear-attention model is GG101's. The graph of a draft model is its own and is not looked at.
What the engine drops for want of free memory is known only while it loads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule
from engine.guards.rewriting import backend_as_written, with_backend
from engine.verdict import Evidence

_COVERED = {
    "load-layers": "STANDARD_GQA_GUARD",
    "load-layers-missing": "STANDARD_GQA_GUARD",
    "load-language-model": "STANDARD_GQA_GUARD",
    "load-lora": "LORA_PREFILL_GRAPH",
    "load-sizes-unset": "PREFILL_COVERAGE",
    "load-sizes-fitting": "PREFILL_COVERAGE",
    "load-pipeline-context": "PP_GRAPH",
    "load-eagle-target": "TC_PIECEWISE_LEGACY",
}

_START_FAILS = "load-sizes-fitting"
"""The engine hands back a runner where it then reads a capture's result: the server stops with AttributeError."""


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the engine gives up the resolved prefill graph."""
    resolution, load = examined.predicted.resolution, examined.predicted.prediction.load
    if resolution is None or load is None or load.prefill != "dropped":
        return
    backend = resolution.graph["prefill"].backend
    carrying = resolution.model.state_carrying
    if backend == "full" and carrying is not None and not carrying.inkling:
        return  # GG101 says so, and rejects
    step = next(d.step for d in reversed(examined.predicted.ledger) if d.key == "prefill.load")
    fails = step == _START_FAILS
    release = examined.predicted.release.text
    arguments = examined.launch.arguments
    written = backend_as_written(arguments, "prefill")
    happens = (
        f"SGLang {release} gives up the {backend} prefill graph while it loads the model, and then stops with an "
        "AttributeError"
        if fails
        else f"SGLang {release} drops the {backend} prefill graph while it loads the model, with one line in its log"
    )
    remedy = (
        f"Replace {written} with --cuda-graph-backend-prefill disabled, which is what runs."
        if written
        else "Add --cuda-graph-backend-prefill disabled, which is what runs."
    )
    if fails:
        remedy = "Set smaller prefill sizes, or --cuda-graph-backend-prefill disabled."
    finding = RULE.finding(
        "error" if fails else "warning",
        f"{happens}: {load.why}. Prefill runs eagerly." if not fails else f"{happens}: {load.why}.",
        remedy,
        suggestion=with_backend(arguments, "prefill", "disabled") if written or fails else None,
    )
    yield Hit(finding=dataclasses.replace(finding, covers=(_COVERED[step],)))


RULE = Rule(
    id="GG103",
    slug="dropped-while-loading",
    title="prefill graphs that the engine drops while the model loads",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=tuple(dict.fromkeys(_COVERED.values())),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/model_executor/model_runner_components/cuda_graph_setup.py",
            says="capture_prefill_graph returns without a graph where some layers do not apply Standard GQA",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/model_executor/model_runner_components/layer_setup.py",
            says="which attributes of a decoder layer hold an attention that the graph can address",
        ),
    ),
    check=check,
)
