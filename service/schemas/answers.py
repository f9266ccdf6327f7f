"""Answers, for the OpenAPI document: what clients may rely on. Members may be added; none of these will go."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Further members may appear."""

    model_config = ConfigDict(extra="allow")


class FieldErrorOut(Answer):
    """One wrong field of a request."""

    pointer: str
    field: str
    detail: str
    suggestion: str | None


class ProblemOut(Answer):
    """A problem (RFC 9457). `validation` is there where a launch was rejected."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str | None
    errors: list[FieldErrorOut]
    validation: dict[str, Any] | None = None


class EvidenceOut(Answer):
    """Where a rule's knowledge comes from."""

    kind: str
    reference: str
    says: str


class FindingOut(Answer):
    """One reason of one rule."""

    rule: str
    slug: str
    covers: list[str]
    severity: Literal["error", "warning", "note"]
    phase: Literal["decode", "prefill"] | None
    message: str
    remedy: str
    suggestion: list[str] | None
    evidence: list[EvidenceOut]


class EngineErrorOut(Answer):
    """The engine's own refusal."""

    stage: Literal["parse", "resolve"]
    type: str
    message: str


class PredictionOut(Answer):
    """What this release does with this launch: the engine alone."""

    outcome: Literal["resolved", "refused"]
    graph: dict[str, dict[str, Any]] | None = None
    args: dict[str, Any] | None = None
    locked: list[list[str]]
    error: EngineErrorOut | None = None
    load: dict[str, Any] | None = None
    unexamined: list[str]
    log: list[str]


class EffectiveOut(Answer):
    """The launch after policy."""

    arguments: list[str]
    graph: dict[str, dict[str, Any]]


class DecisionOut(Answer):
    """Who changed what, from, to, because of what."""

    step: str
    layer: str
    key: str
    before: Any
    after: Any
    why: str
    source: str


class ValidationOut(Answer):
    """One answered validation."""

    id: str
    created_at: str
    request: dict[str, Any]
    verdict: Literal["accepted", "adjusted", "rejected"]
    summary: str
    model: dict[str, Any]
    engine: dict[str, Any]
    hardware: dict[str, Any]
    prediction: PredictionOut
    findings: list[FindingOut]
    effective: EffectiveOut | None
    ledger: list[DecisionOut]
    notes: list[str]
    policy: dict[str, Any]
    plan: dict[str, Any] | None


class BatchItem(Answer):
    """One launch of a batch: its answer, or the problem that it is."""

    index: int
    validation: ValidationOut | None
    problem: ProblemOut | None


class BatchCounts(Answer):
    """Launches by verdict; `failed` are those that could not be answered."""

    accepted: int
    adjusted: int
    rejected: int
    failed: int


class BatchOut(Answer):
    """The answers, in the order of the launches."""

    items: list[BatchItem]
    counts: BatchCounts


class ChangeOut(Answer):
    """One value that differs from the release before, and the step that decided it."""

    key: str
    before: Any
    after: Any
    because: str
    source: str


class OnReleaseOut(Answer):
    """The launch on one release: its words there, each rewriting, the answer, and what changed."""

    release: str
    as_written: dict[str, Any]
    arguments: list[str]
    rewritten: list[str]
    verdict: dict[str, Any]
    changes: list[ChangeOut]


class ComparisonOut(Answer):
    """One launch on several releases."""

    request: dict[str, Any]
    releases: list[OnReleaseOut]


class ValidationBrief(Answer):
    """A validation in a list."""

    id: str
    created_at: str
    verdict: Literal["accepted", "adjusted", "rejected"]
    summary: str
    model: str
    release: str
    gpu: str
    rules: list[str]
    created_by: str | None = Field(description="Whose it is; null where nobody had to say who they are.")


class ValidationsPage(Answer):
    """Newest first; `next_cursor` is null on the last page."""

    items: list[ValidationBrief]
    next_cursor: str | None


CaptureState = Literal["queued", "running", "succeeded", "failed", "cancelled", "dead"]


class CaptureBrief(Answer):
    """A capture in short. `waiting_for`: the kind of worker that it needs, while none is there."""

    id: str
    created_at: str
    state: CaptureState
    started_at: str | None
    finished_at: str | None
    attempts: int
    cancel_requested: bool
    reason: str | None
    validation_id: str
    created_by: str | None = Field(description="Whose it is; null where nobody had to say who they are.")
    waiting_for: str | None


class CaptureOut(CaptureBrief):
    """One capture. `succeeded`: there is a report, whatever the report says."""

    capture: dict[str, Any]
    validation: ValidationOut
    report: dict[str, Any] | None


class CaptureListed(CaptureBrief):
    """A capture in a list, with what it is of."""

    model: str
    verdict: Literal["accepted", "adjusted", "rejected"]
    release: str
    gpu: str


class CapturesPage(Answer):
    """Newest first; `next_cursor` is null on the last page."""

    items: list[CaptureListed]
    next_cursor: str | None


class WorkerOut(Answer):
    """A worker as it registered. `kind` is `cpu` or the GPU's, `memory_mib` its device's memory; one that is not
    `alive` has been silent for too long."""

    id: str
    kind: str
    gpu: str | None
    memory_mib: int | None
    driver: str | None
    torch: str | None
    version: str
    started_at: str
    last_seen_at: str
    capture_id: str | None
    alive: bool


class WorkersOut(Answer):
    """Every worker that has been seen within the hour."""

    items: list[WorkerOut]


class Items(Answer):
    """A whole list."""

    items: list[dict[str, Any]]


class ModelOut(Answer):
    """The facts of a model that bear on graphs."""

    id: str | None
    source: Literal["hub", "local", "inline", "catalogue"]
    architectures: list[str]
    layers: int
    layer_kinds: list[str]
    attention: str
    hybrid_family: str


class Alive(Answer):
    """The process answers."""

    status: Literal["ok"]


class Ready(Answer):
    """Each part that must work, `ok` or what it said. The model hub need not: `ok`, `offline`, `failing`, or for how
    long it is left alone."""

    status: Literal["ok", "unready"]
    checks: dict[str, str]
    hub: str
