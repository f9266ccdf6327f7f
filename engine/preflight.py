"""Read this first: a launch goes in, a verdict comes out.

1. the model id becomes facts (:mod:`engine.models`),
2. the engine release resolves the launch, step by step (:mod:`engine.sglang.predict`),
3. the guards say whether that is safe (:mod:`engine.guards`),
4. the policy says how strictly each rule is held (:mod:`engine.modes`), and turns findings into the verdict and the
   launch to run instead (:mod:`engine.policy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.errors import UnknownEngine
from engine.guards import findings_for
from engine.guards.base import Examined
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.modes import Gate, gate_at
from engine.policy import decide
from engine.sglang.predict import predict
from engine.verdict import Verdict


class Resolver(Protocol):
    """Whatever turns a reference to a model into its facts."""

    def resolve(self, ref: ModelRef) -> ModelFacts: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A launch, its model's facts, what the engine will do with it and what graphgate says of that."""

    examined: Examined
    verdict: Verdict

    @property
    def launch(self) -> Launch:
        """The launch as it was asked for."""
        return self.examined.launch

    @property
    def facts(self) -> ModelFacts:
        """The facts of its model."""
        return self.examined.facts


def check(launch: Launch, resolver: Resolver, gate: Gate | None = None) -> Checked:
    """The verdict on one launch. ``gate`` is the policy at the place where it is asked; None enforces every rule.

    Raises:
        QuestionError: the launch cannot be understood, or its model cannot be resolved.
    """
    return check_facts(launch, resolver.resolve(launch.model), gate)


def check_facts(launch: Launch, facts: ModelFacts, gate: Gate | None = None) -> Checked:
    """The verdict on a launch whose model is resolved already."""
    if launch.engine != "sglang":
        raise UnknownEngine(
            f"No engine is named {launch.engine[:40]!r} here.", remedy="Known: sglang.", field="engine.name"
        )
    gpu = gpu_named(launch.gpu)
    held = gate or gate_at("cli")
    examined = Examined(
        launch=launch,
        facts=facts,
        gpu=gpu,
        predicted=predict(launch, facts, gpu),
        parameters=held.policy.parameters,
    )
    hits, notes = held.applied(findings_for(examined), facts.model_id or launch.model.label)
    return Checked(examined=examined, verdict=decide(examined, hits, policy=held.to_dict(), notes=notes))
