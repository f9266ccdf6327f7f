"""What is answered: prediction, findings, ledger, verdict. Plain values; ``to_dict`` gives every interface its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from engine.launch import Phase

Outcome = Literal["resolved", "refused"]
Stage = Literal["parse", "resolve"]
Severity = Literal["error", "warning", "note"]
VerdictKind = Literal["accepted", "adjusted", "rejected"]
LoadOutcome = Literal["attempted", "dropped", "disabled"]
Layer = Literal["engine-default", "platform-default", "operator", "engine", "guard"]


class Decision(NamedTuple):
    """One change of one value: who changed what, from, to, and because of what.

    ``step`` names the resolution step or guard; ``layer`` whose intent the new value is; ``key`` is a dotted name such
    as ``prefill.backend`` or ``page_size``; ``source`` the engine file and function (or the rule id) it follows.

    A tuple, because a launch makes a dozen of them, and a frozen dataclass takes three times as long to make.
    """

    step: str
    layer: Layer
    key: str
    before: Any
    after: Any
    why: str
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "layer": self.layer,
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "why": self.why,
            "source": self.source,
        }


class PhaseGraph(NamedTuple):
    """What the engine resolved for one phase; the fields and units are the engine's own.

    ``bs`` are capture sizes, ascending: requests for decode, tokens for prefill.
    """

    backend: str | None = None
    max_bs: int | None = None
    bs: tuple[int, ...] | None = None
    max_seq_len: int | None = None
    max_context_size: int | None = None
    full_prefill_max_req: int | None = None
    full_prefill_prefix_chunk_tokens: int | None = None
    tc_compiler: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "max_bs": self.max_bs,
            "bs": None if self.bs is None else list(self.bs),
            "max_seq_len": self.max_seq_len,
            "max_context_size": self.max_context_size,
            "full_prefill_max_req": self.full_prefill_max_req,
            "full_prefill_prefix_chunk_tokens": self.full_prefill_prefix_chunk_tokens,
            "tc_compiler": self.tc_compiler,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineError:
    """The engine's own refusal: ``stage`` "parse" is its command-line parser, "resolve" everything after."""

    stage: Stage
    type: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        return {"stage": self.stage, "type": self.type, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What becomes of the resolved prefill graph while the model loads. ``attempted`` says nothing about success."""

    prefill: LoadOutcome
    why: str

    def to_dict(self) -> dict[str, Any]:
        return {"prefill": self.prefill, "why": self.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What this engine release will do with this launch: the engine alone, untouched by guards and policy.

    ``args`` are the other resolved arguments that bear on graphs, by the engine's own names; ``locked`` the (phase,
    key) pairs that the engine treats as explicitly set; ``unexamined`` the given options without bearing on graphs;
    ``log`` the warnings the engine would print, in order.
    """

    outcome: Outcome
    graph: Mapping[Phase, PhaseGraph] | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    locked: tuple[tuple[str, str], ...] = ()
    error: EngineError | None = None
    load: Load | None = None
    unexamined: tuple[str, ...] = ()
    log: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"outcome": self.outcome}
        if self.graph is not None:
            out["graph"] = {phase: graph.to_dict() for phase, graph in self.graph.items()}
            out["args"] = dict(self.args)
        out["locked"] = [list(pair) for pair in self.locked]
        if self.error is not None:
            out["error"] = self.error.to_dict()
        if self.load is not None:
            out["load"] = self.load.to_dict()
        out["unexamined"] = list(self.unexamined)
        out["log"] = list(self.log)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a rule's knowledge comes from: a public report, or a file of the engine's sources."""

    kind: Literal["report", "source", "paper", "capture"]
    reference: str
    says: str

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "reference": self.reference, "says": self.says}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason of one guard. ``remedy`` says what to write instead; ``suggestion`` is the launch rewritten so."""

    rule: str
    slug: str
    covers: tuple[str, ...]
    severity: Severity
    phase: Phase | None
    message: str
    remedy: str
    suggestion: tuple[str, ...] | None = None
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "slug": self.slug,
            "covers": list(self.covers),
            "severity": self.severity,
            "phase": self.phase,
            "message": self.message,
            "remedy": self.remedy,
            "suggestion": None if self.suggestion is None else list(self.suggestion),
            "evidence": [e.to_dict() for e in self.evidence],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The launch after policy: the command line to run, and the graph configuration it leads to."""

    arguments: tuple[str, ...]
    graph: Mapping[Phase, PhaseGraph]

    def to_dict(self) -> dict[str, Any]:
        return {
            "arguments": list(self.arguments),
            "graph": {phase: graph.to_dict() for phase, graph in self.graph.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to one launch.

    ``effective`` is None where the launch is rejected, ``plan`` where the engine refuses it: the graphs of each phase,
    as :mod:`engine.plan` makes them.
    """

    verdict: VerdictKind
    summary: str
    prediction: Prediction
    findings: tuple[Finding, ...]
    ledger: tuple[Decision, ...]
    effective: Effective | None
    model: Mapping[str, Any]
    engine: Mapping[str, Any]
    hardware: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "summary": self.summary,
            "model": dict(self.model),
            "engine": dict(self.engine),
            "hardware": dict(self.hardware),
            "prediction": self.prediction.to_dict(),
            "findings": [f.to_dict() for f in self.findings],
            "effective": None if self.effective is None else self.effective.to_dict(),
            "ledger": [d.to_dict() for d in self.ledger],
            "notes": list(self.notes),
            "policy": dict(self.policy),
            "plan": None if self.plan is None else dict(self.plan),
        }
