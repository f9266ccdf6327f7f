"""What SGLang's log says of its captures, line by line. No torch here.

The forms are those of SGLang 0.5.15 to 0.5.23: ``Capture target prefill CUDA graph begin. backend=...,
num_tokens=[...]`` and ``... end. elapsed=1.23 s, mem usage=0.45 GB`` (0.5.15: ``srt/model_executor/model_runner.py``;
newer: ``srt/model_executor/model_runner_components/cuda_graph_setup.py``), the same for ``target decode`` and, with
speculative decoding, ``target verify``; decode sizes stand in the first line of older releases and in the last of newer
ones. A prefill graph that is given up says ``Disable prefill CUDA graph ...``. ``The server is fired up`` comes from
``srt/entrypoints/http_server.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.capture.job import PhasePlan
from engine.capture.report import CaptureFailure, PhaseOutcome, PhaseReport
from engine.launch import Phase

PHASE_OF: dict[str, Phase] = {"prefill": "prefill", "decode": "decode", "verify": "decode"}
_LINE = re.compile(r"Capture target (?P<what>prefill|decode|verify) \w+ graph (?P<edge>begin|end)\. (?P<rest>.*)")
_SIZES = re.compile(r"\b(?:num_tokens|bs)=\[(?P<sizes>[\d, ]*)\]")
_COST = re.compile(r"elapsed=(?P<seconds>[\d.]+) s, mem usage=(?P<memory>-?[\d.]+) GB")
_GIVEN_UP = re.compile(r"(?P<why>Disable (?:target )?prefill CUDA graph.*)")
_ERROR = re.compile(r"(?:^|\s)(?:\w+\.)*(?P<type>\w*(?:Error|Exception)): (?P<message>.+)")
READY = "The server is fired up and ready to roll!"
GUARD = "CUDA graph metadata of the "
"""How the plugin's guard of the state tables begins."""


@dataclass(slots=True)
class _Seen:
    begun: bool = False
    sizes: tuple[int, ...] = ()
    cost: tuple[float, float] | None = None
    given_up: str = ""


@dataclass(slots=True)
class EngineLog:
    """The log so far: feed it line by line; :meth:`phases` is what it amounts to.

    ``ready``: the server takes requests, so all captures are over. ``events``: captures that began and ended, in order,
    by the names that the worker's own events have.
    """

    ready: bool = False
    events: list[str] = field(default_factory=list)
    error: CaptureFailure | None = None
    _seen: dict[Phase, _Seen] = field(default_factory=dict)

    def line(self, text: str) -> str | None:
        """Take one line in; the event that it stands for, if any."""
        if READY in text:
            self.ready = True
        elif found := _LINE.search(text):
            return self._captured(PHASE_OF[found["what"]], found["edge"], found["rest"])
        elif found := _GIVEN_UP.search(text):
            self._of("prefill").given_up = found["why"].strip()
        elif found := _ERROR.search(text):
            self.error = CaptureFailure(type=found["type"], message=found["message"].strip())
        return None

    def phases(self, plans: Sequence[PhasePlan], *, exit_status: int | None = None) -> dict[Phase, PhaseReport]:
        """A report for each plan. ``exit_status``: of an engine that ended by itself; None while it runs."""
        return {plan.phase: self._report(plan, exit_status) for plan in plans}

    def _captured(self, phase: Phase, edge: str, rest: str) -> str:
        seen = self._of(phase)
        seen.begun = True
        if sizes := _SIZES.search(rest):
            seen.sizes = tuple(sorted(int(size) for size in sizes["sizes"].split(",") if size.strip()))
        if edge == "end" and (cost := _COST.search(rest)):
            seen.cost = float(cost["seconds"]), float(cost["memory"])
        self.events.append(f"{phase}.capture.{edge}")
        return self.events[-1]

    def _of(self, phase: Phase) -> _Seen:
        return self._seen.setdefault(phase, _Seen())

    def _report(self, plan: PhasePlan, exit_status: int | None) -> PhaseReport:
        seen = self._of(plan.phase)
        outcome, note, error = self._outcome(plan, seen, exit_status)
        return PhaseReport(
            outcome=outcome,
            backend=plan.backend,
            recorded_as="the engine's own graphs",
            planned=plan.sizes,
            sizes=seen.sizes,
            error=error,
            note=note,
        )

    def _outcome(
        self, plan: PhasePlan, seen: _Seen, exit_status: int | None
    ) -> tuple[PhaseOutcome, str, CaptureFailure | None]:
        if seen.cost is not None:
            seconds, memory = seen.cost
            said = f"captured in {seconds:g} s with {memory:g} GB of GPU memory, by the engine's log"
            return "ok", f"{said}; the log names no single graph, and no replay was compared with eager.", None
        if not plan.enabled:
            return "skipped", "The plan has this phase's graphs disabled.", None
        if seen.given_up:
            return "skipped", f"The engine gave the graph up: {seen.given_up}", None
        others = any(other.begun and other.cost is None for phase, other in self._seen.items() if phase != plan.phase)
        if self.error is not None and (seen.begun or not others):
            return _failed(self.error, begun=seen.begun), "", self.error
        if others:
            return "skipped", "The engine ended before this phase.", None
        if exit_status is None:
            return "skipped", "The engine's log says nothing of this phase.", None
        ended = CaptureFailure(type="EngineEnded", message=f"The engine ended with status {exit_status}.")
        return "infrastructure", "", ended


def _failed(error: CaptureFailure, *, begun: bool) -> PhaseOutcome:
    if GUARD in error.message or error.message.startswith("graphgate "):
        return "guard_refused"
    if "out of memory" in error.message.lower() or error.type == "OutOfMemoryError":
        return "oom"
    return "capture_failed" if begun else "infrastructure"
