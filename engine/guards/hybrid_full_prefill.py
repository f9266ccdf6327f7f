"""Full prefill graphs on hybrid linear-attention models.

## What it does
Looks for a launch whose prefill graphs resolve to the backend `full` on a model whose layers carry recurrent state
(Mamba, Mamba-2, gated delta net, Kimi delta attention, lightning attention, short convolution). Where the platform's
defaults brought the backend, prefill graphs are switched off with a warning. Where the operator asked for it by name,
the launch is rejected.

## Why it is bad
The engine captures prefill graphs before the decode graph runner exists, and only the decode runner calls
`init_cuda_graph_state()`, which allocates the state-index tables of the linear-attention backend. The first captured
prefill batch looks up an empty table, and the server dies with `IndexError: list index out of range` in
`_replay_metadata`, after the weights have been loaded. Where the engine cannot address every layer of the model it
drops the graph while loading instead: the operator asked for it by name and silently gets none.

## What to do
Leave the prefill backend to the engine, or name the one that the suggestion names. Decode graphs are not affected.

## Exceptions
Inkling carries short-convolution state, yet has its own attention backend that supports full prefill; the engine
defaults to it. Models whose configuration is not on the release's own list of state-carrying configurations
(`mambaish_config`), such as MiniMax-M1, RWKV or Zamba2, never reach that backend. 0.5.14 has no full prefill.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from engine.guards.base import Examined, GraphChange, Hit, Rule
from engine.guards.rewriting import backend_as_written, with_backend, without_backend
from engine.sglang.predict import predict
from engine.verdict import Evidence, Load

FAMILY_NAMES = {
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "gdn": "GDN (gated delta net)",
    "kda": "KDA (Kimi delta attention)",
    "lightning": "lightning attention",
    "shortconv": "short convolution",
    "registered": "linear attention",
}


def _engine_choice(examined: Examined) -> str:
    """The prefill backend that the engine takes where nobody names one."""
    launch = dataclasses.replace(
        examined.launch, arguments=without_backend(examined.launch.arguments, "prefill"), defaults={}
    )
    graph = predict(launch, examined.facts, examined.gpu).prediction.graph
    backend = graph["prefill"].backend if graph else None
    return backend if backend == "breakable" else "disabled"


def _happens(load: Load | None, release: str) -> str:
    """What the engine does with the graph: it ends at capture, or is given up before."""
    if load is not None and load.prefill == "dropped":
        return (
            f"SGLang {release} drops its prefill graph while loading, with one line in the log: {load.why}. Whoever "
            "asks for full prefill gets none; decode graphs are captured."
        )
    return (
        f"SGLang {release} captures prefill graphs before the decode graph runner exists, and only the decode runner "
        "allocates the state-index tables that the linear-attention backend looks up: capture ends in IndexError after "
        "the weights are loaded."
    )


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where full prefill meets a model on the release's list of state-carrying configurations."""
    prediction, resolution = examined.predicted.prediction, examined.predicted.resolution
    if resolution is None or not prediction.graph or prediction.graph["prefill"].backend != "full":
        return
    carrying = resolution.model.state_carrying
    if carrying is None or carrying.inkling:
        return
    facts, release = examined.facts, examined.predicted.release.text
    family = FAMILY_NAMES.get(carrying.family, carrying.family)
    model = facts.model_id or "the model"
    architecture = next(iter(resolution.model.architectures), None) or facts.model_type or "no architecture named"
    why = (
        f"{model} ({architecture}) is a hybrid linear-attention model, family {family}. "
        f"{_happens(prediction.load, release)}"
    )
    if ("prefill", "backend") not in prediction.locked:
        remedy = (
            "Nothing to do: prefill graphs are switched off for this launch. "
            "Take full prefill out of the platform's defaults for hybrid models."
        )
        message = f"Full prefill graphs came from the platform's defaults and are disabled: {why}"
        yield Hit(
            finding=RULE.finding("warning", message, remedy), change=GraphChange(phase="prefill", backend="disabled")
        )
        return
    written = backend_as_written(examined.launch.arguments, "prefill") or "prefill backend full"
    choice = _engine_choice(examined)
    remedy = f"Replace {written} with --cuda-graph-backend-prefill {choice}; decode graphs are not affected."
    suggestion = with_backend(examined.launch.arguments, "prefill", choice)
    yield Hit(
        finding=RULE.finding(
            "error", f"{written} asks for full prefill graphs by name: {why}", remedy, suggestion=suggestion
        )
    )


RULE = Rule(
    id="GG101",
    slug="hybrid-full-prefill",
    title="full prefill graphs on a hybrid linear-attention model",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 23)),
    covers=("HYBRID_LINEAR_FULL_PREFILL",),
    phase="prefill",
    backend="full",
    severity="error",
    confidence="certain",
    evidence=(
        Evidence(
            kind="report",
            reference="https://github.com/sgl-project/sglang/issues/48593",
            says="full prefill on a hybrid linear-attention model dies in _replay_metadata with IndexError",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/arg_groups/cuda_graph_hook.py",
            says="the list of rules against full prefill graphs is empty, and an explicit backend skips the rules",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/configs/hybrid_arch.py, mambaish_config",
            says="which configurations are served by the hybrid linear-attention backend",
        ),
    ),
    check=check,
)
