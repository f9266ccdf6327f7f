"""From prediction and findings to the verdict, and to the launch that may run.

Three layers of intent are kept apart: the engine's defaults, the platform's defaults (unlocked: a guard may switch them
off), and what the operator wrote (locked: a guard may only reject).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.guards.base import Examined, GraphChange, Hit
from engine.guards.rewriting import with_backend, with_settings
from engine.launch import PHASES, Phase
from engine.plan import capture_plan
from engine.sglang.predict import Predicted, predict
from engine.sglang.spelling import meant
from engine.verdict import Decision, Effective, PhaseGraph, Verdict, VerdictKind

LOADED = "prefill.load"
"""The ledger's key for what becomes of the resolved prefill graph while the model loads."""


def decide(
    examined: Examined, hits: Sequence[Hit], *, policy: Mapping[str, Any] | None = None, notes: Sequence[str] = ()
) -> Verdict:
    """The verdict on an examined launch. ``policy`` names the policy in force, ``notes`` say what it weakened."""
    predicted = examined.predicted
    prediction = predicted.prediction
    findings = tuple(hit.finding for hit in hits)
    changes = tuple(hit.change for hit in hits if hit.change is not None)
    rejected = prediction.outcome == "refused" or any(finding.severity == "error" for finding in findings)
    switched = engine_changes(predicted)
    if any(change.phase == "prefill" for change in changes):
        switched = tuple(d for d in switched if d.key != LOADED)  # what a guard switches off is not loaded
    kind: VerdictKind = "rejected" if rejected else "adjusted" if changes or switched else "accepted"
    ledger = predicted.ledger
    effective = None
    if not rejected:
        effective = _effective(examined, changes)
        ledger = (*ledger, *_guard_decisions(hits, prediction.graph or {}))
    return Verdict(
        verdict=kind,
        summary=_summary(kind, predicted, hits, switched),
        prediction=prediction,
        findings=findings,
        ledger=ledger,
        effective=effective,
        model=examined.facts.summary(),
        engine={"name": examined.launch.engine, "version": predicted.release.text, "asked": predicted.release.asked},
        hardware={**examined.gpu.to_dict(), "count": examined.launch.gpu_count},
        notes=(*_notes(predicted), *notes),
        policy=policy or {},
        plan=_plan(examined, effective.graph if effective is not None else prediction.graph),
    )


def _plan(examined: Examined, graph: Mapping[Phase, PhaseGraph] | None) -> dict[str, Any] | None:
    if graph is None:
        return None
    return {phase: plan.to_dict() for phase, plan in capture_plan(examined, graph).items()}


def engine_changes(predicted: Predicted) -> tuple[Decision, ...]:
    """Where the engine itself overruled a graph that was asked for, or that is its own default.

    That is a phase's backend that ends as another than it was meant, a capture size that the operator wrote and the
    engine replaced, and a prefill graph that the engine gives up while the model loads. The operator's own switches
    set the intent, so they are no change.
    """
    overruled: list[Decision] = []
    engine: dict[str, list[Decision]] = {}
    for decision in predicted.ledger:
        if decision.layer == "engine":
            engine.setdefault(decision.key, []).append(decision)
    locked = predicted.prediction.locked
    for phase in PHASES:
        for key in ("backend", "bs", "max_bs"):
            if key != "backend" and (phase, key) not in locked:
                continue
            own = engine.get(f"{phase}.{key}")
            if own and own[0].before is not None and own[-1].after != own[0].before:
                overruled.append(own[-1])
    overruled += [d for d in predicted.ledger if d.key == LOADED]
    return tuple(overruled)


def _guard_decisions(hits: Iterable[Hit], graph: Mapping[Phase, PhaseGraph]) -> tuple[Decision, ...]:
    return tuple(
        Decision(
            step=hit.finding.slug,
            layer="guard",
            key=f"{hit.change.phase}.backend",
            before=graph[hit.change.phase].backend,
            after=hit.change.backend,
            why=hit.finding.message,
            source=hit.finding.rule,
        )
        for hit in hits
        if hit.change is not None
    )


def _effective(examined: Examined, changes: Sequence[GraphChange]) -> Effective:
    """The command line that carries the platform's defaults and the guards' changes, and the graphs it leads to."""
    launch, prediction = examined.launch, examined.predicted.prediction
    graph = prediction.graph or {}
    changed = {change.phase: change.backend for change in changes}
    if not changed and not launch.defaults:
        return Effective(arguments=launch.arguments, graph=graph)
    arguments = with_settings(launch.arguments, _platform_settings(launch.defaults, prediction.locked, graph, changed))
    for phase, backend in changed.items():
        arguments = with_backend(arguments, phase, backend)
    again = predict(dataclasses.replace(launch, arguments=arguments, defaults={}), examined.facts, examined.gpu)
    return Effective(arguments=arguments, graph=again.prediction.graph or graph)


def _platform_settings(
    defaults: Mapping[str, Any],
    locked: Iterable[tuple[str, str]],
    graph: Mapping[Phase, PhaseGraph],
    changed: Mapping[Phase, str],
) -> dict[str, dict[str, Any]]:
    """The platform's defaults that the operator did not overrule; a backend as the engine resolved it."""
    taken = set(locked)
    settings: dict[str, dict[str, Any]] = {}
    for phase in PHASES:
        wanted = defaults.get(phase)
        if not isinstance(wanted, Mapping):
            continue
        settings[phase] = {
            key: graph[phase].backend if key == "backend" and phase in graph else value
            for key, value in wanted.items()
            if (phase, key) not in taken and not (key == "backend" and phase in changed)
        }
    return settings


def _summary(kind: VerdictKind, predicted: Predicted, hits: Sequence[Hit], switched: Sequence[Decision]) -> str:
    """One sentence: what happens, and what to do first."""
    error = predicted.prediction.error
    if error is not None:
        advice = "".join(f" {retired}" for retired in predicted.retired) or meant(error.message, predicted.release)
        stop = "" if error.message.endswith((".", "!", "?")) else "."
        return f"SGLang {predicted.release.text} refuses this launch ({error.type}): {error.message}{stop}{advice}"
    if kind == "rejected":
        first = hits[0].finding
        return f"{first.rule} {first.slug}: {first.remedy}"
    if kind == "adjusted":
        parts = [
            f"{h.change.phase} graphs {h.change.backend} by {h.finding.rule}" for h in hits if h.change is not None
        ]
        parts += [
            f"prefill graphs dropped while loading ({d.why})"
            if d.key == LOADED
            else f"{d.key} {_shown(d.before)} -> {_shown(d.after)} by the engine ({d.why})"
            for d in switched
        ]
        return "Runs, but not as asked: " + "; ".join(parts)
    graph = predicted.prediction.graph or {}
    return "Runs as asked: " + ", ".join(f"{phase} graphs {graph[phase].backend}" for phase in PHASES if phase in graph)


def _notes(predicted: Predicted) -> tuple[str, ...]:
    """What the reader should know beside the verdict: that another release answered."""
    note = predicted.release.note
    return (note,) if note else ()


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) > 4:
        return f"{len(value)} sizes up to {value[-1]}"
    return str(value)
