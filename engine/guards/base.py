"""What a guard is: a rule with a stable id, bounds, evidence, and a check over an examined launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from engine.hardware import Gpu
from engine.launch import PHASES, Launch, Phase
from engine.models.facts import ModelFacts
from engine.sglang.resolution import GraphState, Resolution, Version
from engine.verdict import Decision, Evidence, Finding, Severity

if TYPE_CHECKING:
    from engine.sglang.predict import Predicted

Confidence = Literal["certain", "likely"]


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What a guard sees: the launch, its model, its GPU, and what the engine will do.

    The properties are worked out once, for all guards. ``resolution``, ``args``, ``prefill`` and ``decode`` are there
    where the engine resolved the launch.
    """

    launch: Launch
    facts: ModelFacts
    gpu: Gpu
    predicted: Predicted
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def parameter(self, rule: Rule, name: str) -> float:
        """A rule's parameter: the policy's value where it gives one, the rule's own otherwise."""
        return self.parameters.get(rule.id, {}).get(name, rule.parameters[name])

    @cached_property
    def resolution(self) -> Resolution:
        """The engine's state at the end of the resolution.

        Raises:
            LookupError: the engine's parser refused the launch, so there is none.
        """
        resolution = self.predicted.resolution
        if resolution is None:
            raise LookupError("the launch was refused before anything resolved")
        return resolution

    @cached_property
    def args(self) -> Any:
        """The resolved arguments, by the engine's own names."""
        return self.resolution.args

    @cached_property
    def prefill(self) -> GraphState:
        """The prefill graph as it resolved."""
        return self.resolution.graph["prefill"]

    @cached_property
    def decode(self) -> GraphState:
        """The decode graph as it resolved."""
        return self.resolution.graph["decode"]

    @property
    def release(self) -> str:
        """The number of the engine's release."""
        return self.predicted.release.text

    def since(self, *version: int) -> bool:
        """Whether the release is that one or a newer one."""
        return self.predicted.release.version >= version

    def named(self, phase: Phase) -> bool:
        """Whether the phase's backend was set by name, which makes the engine skip its own rules."""
        return (phase, "backend") in self.resolution.locked

    @cached_property
    def captures_prefill(self) -> bool:
        """Whether the engine gets as far as capturing prefill graphs: resolved, and not dropped while loading."""
        load = self.predicted.prediction.load
        return self.prefill.backend != "disabled" and (load is None or load.prefill == "attempted")

    @cached_property
    def switched_off(self) -> Mapping[Phase, Decision]:
        """The phases whose graph the engine itself switched off, with its last word on each."""
        out: dict[Phase, Decision] = {}
        graph = self.resolution.graph
        for phase in PHASES:
            if graph[phase].backend == "disabled":
                key = f"{phase}.backend"
                last = next((d for d in reversed(self.predicted.ledger) if d.key == key), None)
                if last is not None and last.layer == "engine":
                    out[phase] = last
        return out

    @cached_property
    def attention_backends(self) -> tuple[str | None, str | None]:
        """The attention backends of prefill and decode."""
        args = self.args
        common = args.attention_backend
        return args.prefill_attention_backend or common, args.decode_attention_backend or common


def report(number: int, says: str, *, pull: bool = False, repository: str = "sgl-project/sglang") -> Evidence:
    """A public report: an issue of the engine's repository, or a pull request."""
    kind = "pull" if pull else "issues"
    return Evidence(kind="report", reference=f"https://github.com/{repository}/{kind}/{number}", says=says)


def source(release: str, place: str, says: str) -> Evidence:
    """A place in the engine's sources: the release, the file below ``sglang/srt`` and, after a comma, what in it."""
    return Evidence(kind="source", reference=f"sglang {release}: srt/{place}", says=says)


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
    the evidence makes it; ``title`` one line for lists; ``parameters`` the numbers that a policy may set, with the
    values they have otherwise; ``refusals`` whether it looks at launches that the engine
    itself refuses (and only at those), to say what to write instead.
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
    parameters: Mapping[str, float] = field(default_factory=dict)
    refusals: bool = False
    documentation: str = ""

    def holds_for(self, version: Version) -> bool:
        """Whether the engine release of that version is within the rule's bounds."""
        return self.releases[0] <= version <= self.releases[1]

    def finding(
        self,
        severity: Severity,
        message: str,
        remedy: str,
        *,
        suggestion: tuple[str, ...] | None = None,
        phase: Phase | None = None,
    ) -> Finding:
        """A finding of this rule, with its names and evidence filled in."""
        return Finding(
            rule=self.id,
            slug=self.slug,
            covers=self.covers,
            severity=severity,
            phase=phase or self.phase,
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
            "parameters": dict(self.parameters),
            "evidence": [e.to_dict() for e in self.evidence],
            "documentation": self.documentation,
        }
