"""A capture report for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.capture.report import CaptureReport, GraphReport, PhaseReport
from engine.launch import Phase
from engine.verdict import Verdict
from service.cli.estimate_text import estimate_lines
from service.cli.tables import table
from service.cli.words import Style, clean, coloured, paint, wrapped

_MIB = 1024 * 1024
_UNITS: dict[Phase, str] = {"decode": "requests", "prefill": "tokens"}
_CLAIMS = {
    "measured": "measured: CUDA graphs on a GPU",
    "emulated": "emulated: operator graphs on a CPU, which prove order, shapes and state, not GPU kernels",
}


def report_text(verdict: Verdict, report: CaptureReport, *, verbose: bool) -> str:
    """The report; ``verbose``: with the rules by which model and sizes were made small. No line end at its end."""
    return "\n".join(_lines(verdict, report, verbose=verbose))


def event_line(at: float, name: str, data: Mapping[str, Any]) -> str:
    """One event of a running capture."""
    rest = " ".join(f"{key}={value}" for key, value in data.items())
    return clean(f"{at:8.3f} s  {name} {rest}".rstrip())


def _lines(verdict: Verdict, report: CaptureReport, *, verbose: bool) -> Iterator[str]:
    colour = coloured()
    outcomes = ", ".join(f"{phase} {part.outcome}" for phase, part in report.phases.items())
    good = all(part.outcome in ("ok", "skipped") for part in report.phases.values()) and report.error is None
    style: Style = "green" if good else "red"
    yield paint(f"{outcomes or 'nothing captured'}", style, colour)
    yield from wrapped(
        f"Claim: {_CLAIMS.get(report.claim or '', 'none: nothing was captured')}", indent="  ", hanging="    "
    )
    yield from wrapped(f"Verdict before: {verdict.verdict}: {clean(verdict.summary)}", indent="  ", hanging="    ")
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.items())
    where = ", ".join(part for part in (report.device, report.recorder, versions) if part)
    if where:
        yield from wrapped(f"On {clean(where)}; state tables {report.allocation}", indent="  ", hanging="    ")
    if verbose:
        for head, rule in (("Scaled", report.scaling), ("Sizes", report.size_rule)):
            yield from wrapped(f"{head}: {clean(rule)}", indent="  ", hanging="    ") if rule else ()
    for phase, part in report.phases.items():
        yield ""
        yield from _phase(phase, part, colour)
    if report.estimate is not None:
        yield ""
        yield from estimate_lines(report.estimate, verbose=verbose)
    if report.error is not None:
        yield ""
        yield from wrapped(f"{report.error.type}: {clean(report.error.message)}", hanging="  ")
    if report.wall_s is not None:
        yield ""
        yield f"{report.wall_s:.1f} s from start to report; the process: {clean(report.exit)}"


def _phase(phase: Phase, part: PhaseReport, colour: bool) -> Iterator[str]:
    style: Style = "green" if part.outcome == "ok" else "dim" if part.outcome == "skipped" else "red"
    backend = f", backend {part.backend}" if part.backend else ""
    yield f"{phase}: {paint(part.outcome, style, colour)}{backend}"
    if part.planned and part.sizes:
        yield f"  {len(part.sizes)} of the engine's {len(part.planned)} sizes"
    if part.note:
        yield from wrapped(clean(part.note), indent="  ")
    if part.error is not None:
        yield from wrapped(f"{part.error.type}: {clean(part.error.message)}", indent="  ", hanging="    ")
    if part.graphs:
        head = (_UNITS[phase], "capture ms", "MiB", "replay ms", "eager ms", "output diff", "state diff", "tolerance")
        yield from ("  " + line for line in table(head, [_row(graph) for graph in part.graphs]).splitlines())


def _row(graph: GraphReport) -> tuple[str, ...]:
    return (
        str(graph.size),
        f"{1e3 * graph.capture_s:.1f}",
        f"{graph.bytes / _MIB:.2f}",
        f"{1e3 * graph.replay_s:.2f}",
        f"{1e3 * graph.eager_s:.2f}",
        f"{graph.max_rel:.1e}",
        f"{graph.state_rel:.1e}",
        f"{graph.tolerance:.0e}",
    )
