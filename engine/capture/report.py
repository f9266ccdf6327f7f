"""What comes out of the worker process: what was captured, on what, and how far replay is from eager. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from engine.capture.estimate import Estimate
from engine.launch import Phase

REPORT_VERSION = 1

Claim = Literal["measured", "emulated"]
"""``measured``: CUDA graphs on a GPU. ``emulated``: operator graphs on a CPU."""

PhaseOutcome = Literal[
    "ok",
    "guard_refused",
    "capture_failed",
    "mismatch",
    "oom",
    "timeout",
    "cancelled",
    "crashed",
    "infrastructure",
    "skipped",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFailure:
    """Why a phase, or the whole capture, has no result: the exception's type, and what it said."""

    type: str
    message: str
    traceback: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One replay of one graph beside an eager run from the same state.

    ``lengths``: new tokens of each live request (prefill), or tokens of context before this one (decode);
    ``padding``: rows of the graph without a live request or token; ``scenario``: what this replay varied; ``passes``:
    how many replays it took, one after the other, each going on from the state that the last one left.
    ``max_abs`` and ``max_rel`` are the largest differences of the outputs; ``state_abs`` of the recurrent state, the
    convolution state and the key-value cache, the reserved padding slot aside; relative differences are to the largest
    magnitude of the eager tensor. ``intruded``: slots that belong to no request of the batch, and were written.
    """

    scenario: str
    lengths: tuple[int, ...]
    padding: int
    max_abs: float
    max_rel: float
    state_abs: float
    state_rel: float
    ok: bool
    passes: int = 1
    intruded: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lengths": list(self.lengths)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """One captured graph. ``size``: tokens for prefill, requests for decode; ``bytes``: memory the graph holds."""

    size: int
    capture_s: float
    bytes: int
    replay_s: float
    eager_s: float
    tolerance: float
    max_abs: float
    max_rel: float
    state_abs: float
    state_rel: float
    replays: tuple[Replay, ...] = ()
    operators: int | None = None
    segments: int = 1

    def to_dict(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in self.__slots__}
        out["replays"] = [replay.to_dict() for replay in self.replays]
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """One phase. ``recorded_as`` says what one graph spans; ``planned`` are the sizes the engine would capture."""

    outcome: PhaseOutcome
    backend: str = ""
    recorded_as: str = ""
    planned: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    graphs: tuple[GraphReport, ...] = ()
    error: CaptureFailure | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "backend": self.backend,
            "recorded_as": self.recorded_as,
            "planned": list(self.planned),
            "sizes": list(self.sizes),
            "graphs": [graph.to_dict() for graph in self.graphs],
            "error": None if self.error is None else self.error.to_dict(),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureReport:
    """The report of one capture.

    ``complete``: the worker process wrote it to its end; otherwise the supervisor finished it from what was left.
    ``order`` are the events in the order in which they were observed from outside the process. ``estimate``: what the
    captured graphs let one expect of the whole model; None where nothing was captured.
    """

    id: str
    phases: Mapping[Phase, PhaseReport]
    claim: Claim | None = None
    device: str = ""
    recorder: str = ""
    allocation: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    dtype: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)
    scaling: str = ""
    size_rule: str = ""
    order: tuple[str, ...] = ()
    error: CaptureFailure | None = None
    complete: bool = False
    exit: str = ""
    wall_s: float | None = None
    output_tail: str = ""
    estimate: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": REPORT_VERSION,
            "id": self.id,
            "claim": self.claim,
            "device": self.device,
            "recorder": self.recorder,
            "allocation": self.allocation,
            "versions": dict(self.versions),
            "seed": self.seed,
            "dtype": self.dtype,
            "model": dict(self.model),
            "scaling": self.scaling,
            "size_rule": self.size_rule,
            "phases": {phase: report.to_dict() for phase, report in self.phases.items()},
            "order": list(self.order),
            "error": None if self.error is None else self.error.to_dict(),
            "complete": self.complete,
            "exit": self.exit,
            "wall_s": self.wall_s,
            "output_tail": self.output_tail,
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CaptureReport:
        """The report that :meth:`to_dict` wrote.

        Raises:
            ValueError: for another version of the form.
            KeyError, TypeError: for a mapping that is not one.
        """
        if value.get("version") != REPORT_VERSION:
            raise ValueError(
                f"Capture reports of version {REPORT_VERSION} are read here, not {value.get('version')!r}."
            )
        fields = {name: value[name] for name in cls.__slots__ if name != "estimate"}
        fields["phases"] = {phase: _phase(report) for phase, report in value["phases"].items()}
        fields["order"] = tuple(value["order"])
        fields["error"] = _failure(value["error"])
        estimate = value.get("estimate")  # reports written before there was one are still read
        fields["estimate"] = None if estimate is None else Estimate.from_dict(estimate)
        return cls(**fields)


def _failure(value: Mapping[str, Any] | None) -> CaptureFailure | None:
    return None if value is None else CaptureFailure(**value)


def _phase(value: Mapping[str, Any]) -> PhaseReport:
    return PhaseReport(
        **{
            **value,
            "planned": tuple(value["planned"]),
            "sizes": tuple(value["sizes"]),
            "graphs": tuple(_graph(graph) for graph in value["graphs"]),
            "error": _failure(value["error"]),
        }
    )


def _graph(value: Mapping[str, Any]) -> GraphReport:
    replays = tuple(Replay(**{**replay, "lengths": tuple(replay["lengths"])}) for replay in value["replays"])
    return GraphReport(**{**value, "replays": replays})
