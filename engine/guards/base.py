"""What a guard is: a rule with a stable id, bounds, evidence, and a check over an examined launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from engine.hardware import Gpu
from engine.launch import Launch, Phase
from engine.models.facts import ModelFacts
from engine.sglang.resolution import Version
from engine.verdict import Evidence, Finding, Severity

if TYPE_CHECKING:
    from engine.sglang.predict import Predicted

Confidence = Literal["certain", "likely"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a guard sees: the launch, its model, its GPU, and what the engine will do."""

    launch: Launch
    facts: ModelFacts
    gpu: Gpu
    predicted: Predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChange:
    """What a guard does to a graph that nobody asked for by name: the phase's backend becomes ``backend``."""

    phase: Phase
    backend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A finding, and the change of the launch that makes it harmless where the graph was not asked for by name."""

    finding: Finding
    change: GraphChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One guard.

    ``since`` is the version of graphgate that brought it; ``releases`` the first and the last engine release it holds
    for (both inclusive); ``covers`` the names of the fault in the collection of public reports; ``phase`` and
    ``backend`` what it looks at (None: both, any); ``severity`` the worst finding it makes; ``confidence`` how sure
    the evidence makes it; ``title`` one line for lists.
    """

    id: str
    slug: str
    title: str
    since: str
    releases: tuple[Version, Version]
    covers: tuple[str, ...]
    phase: Phase | None
    backend: str | None
    severity: Severity
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    check: Callable[[Examined], Iterable[Hit]]
    documentation: str = ""

    def holds_for(self, version: Version) -> bool:
        """Whether the engine release of that version is within the rule's bounds."""
        return self.releases[0] <= version <= self.releases[1]

    def finding(
        self, severity: Severity, message: str, remedy: str, *, suggestion: tuple[str, ...] | None = None
    ) -> Finding:
        """A finding of this rule, with its names and evidence filled in."""
        return Finding(
            rule=self.id,
            slug=self.slug,
            covers=self.covers,
            severity=severity,
            phase=self.phase,
            message=message,
            remedy=remedy,
            suggestion=suggestion,
            evidence=self.evidence,
        )

    def to_dict(self) -> dict[str, Any]:
        """The rule as JSON, for ``GET /v1/rules`` and ``graphgate rules``."""
        return {
            "id": self.id,
            "slug": self.slug,
            "title": self.title,
            "since": self.since,
            "engine": "sglang",
            "releases": [".".join(map(str, bound)) for bound in self.releases],
            "covers": list(self.covers),
            "phase": self.phase,
            "backend": self.backend,
            "severity": self.severity,
            "confidence": self.confidence,
            "evidence": [e.to_dict() for e in self.evidence],
            "documentation": self.documentation,
        }
