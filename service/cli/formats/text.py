"""For people at a terminal: the verdict and what to do first, then the reasons, then what will be captured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.launch import PHASES, Phase
from engine.verdict import Decision, Finding, PhaseGraph, Verdict
from service.cli.answers import Answer
from service.cli.problems import option_for
from service.cli.words import Style, clean, coloured, paint, words, wrapped

_VERDICT_STYLES: dict[str, Style] = {"accepted": "green", "adjusted": "yellow", "rejected": "red"}
_SEVERITY_STYLES: dict[str, Style] = {"error": "red", "warning": "yellow", "note": "dim"}
_UNITS: dict[Phase, str] = {"decode": "requests", "prefill": "tokens"}
_SHOWN_SIZES = 8


def render(answers: Sequence[Answer], *, verbose: bool) -> str:
    """The text, without a line end at its end."""
    colour = coloured()
    blocks = ["\n".join(_answer(answer, verbose=verbose, colour=colour)) for answer in answers]
    if len(answers) > 1:
        blocks.append(_count(answers))
    return "\n\n".join(blocks)


def _answer(answer: Answer, *, verbose: bool, colour: bool) -> Iterator[str]:
    verdict = answer.verdict
    if answer.file is not None:
        place = f" ({answer.place})" if answer.place else ""
        yield from wrapped(paint(clean(f"{answer.file}: {answer.title}{place}"), "bold", colour), hanging="  ")
    if verdict is None:
        error = answer.error
        where = option_for(error.field) if error else None
        text = f"{where}: {error.detail} {error.remedy}" if error and where else str(error)
        yield from _headed("unusable", "red", clean(text), colour)
        return
    yield from _headed(verdict.verdict, _VERDICT_STYLES[verdict.verdict], clean(verdict.summary), colour)
    yield from wrapped(_subject(answer, verdict), indent="  ")
    for note in verdict.notes:
        yield from wrapped(f"Note: {clean(note)}", indent="  ", hanging="    ")
    for finding in verdict.findings:
        yield ""
        yield from _finding(finding, verdict, colour)
    if verdict.prediction.graph is not None:
        yield ""
        yield from _graphs(verdict)
    if verdict.effective is not None and answer.launch is not None:
        before, after = answer.launch.arguments, verdict.effective.arguments
        if before != after:
            yield from _launch("Launch it as", after)
    if verbose:
        yield ""
        yield from _ledger(verdict.ledger)
        yield from _more(verdict)


def _headed(head: str, style: Style, text: str, colour: bool) -> list[str]:
    lines = wrapped(f"{head}: {text}", hanging="  ")
    return [paint(head, style, colour) + lines[0][len(head) :], *lines[1:]]


def _subject(answer: Answer, verdict: Verdict) -> str:
    model = verdict.model
    name = clean(model.get("id") or answer.title)
    family = model.get("hybrid_family")
    hybrid = f", hybrid {family}" if family and family != "none" else ""
    architecture = next(iter(model.get("architectures") or ()), None) or model.get("model_type") or "no architecture"
    source = {"hub": "hub", "local": "local file", "inline": "given config", "catalogue": "packaged catalogue"}
    where = source.get(str(model.get("source")), str(model.get("source")))
    engine, hardware = verdict.engine, verdict.hardware
    return (
        f"{name} ({clean(str(architecture))}{hybrid}; {where}), SGLang {engine['version']}, "
        f"{hardware['count']} x {hardware['name']}"
    )


def _finding(finding: Finding, verdict: Verdict, colour: bool) -> Iterator[str]:
    phase = f" ({finding.phase})" if finding.phase else ""
    head = paint(finding.severity, _SEVERITY_STYLES[finding.severity], colour)
    yield f"{head} {finding.rule} {finding.slug}{phase}"
    yield from wrapped(clean(finding.message), indent="  ")
    if finding.remedy and finding.remedy not in verdict.summary:
        yield from wrapped(f"Remedy: {clean(finding.remedy)}", indent="  ", hanging="    ")
    if finding.suggestion is not None:
        yield from _launch("Write instead", finding.suggestion)
    for evidence in finding.evidence:
        if evidence.kind == "report":
            yield from wrapped(f"See {clean(evidence.reference)}", indent="  ", hanging="    ")


def _launch(head: str, arguments: Sequence[str]) -> Iterator[str]:
    yield from wrapped(f"{head}: {words(arguments) or '(no arguments)'}", indent="  ", hanging="    ")


def _graphs(verdict: Verdict) -> Iterator[str]:
    rejected = verdict.effective is None
    graph: Mapping[Phase, PhaseGraph] = (
        verdict.effective.graph if verdict.effective is not None else verdict.prediction.graph or {}
    )
    yield "The engine would capture" if rejected else "Will be captured"
    load = verdict.prediction.load
    for phase in PHASES:
        if phase in graph and phase == "prefill" and load is not None and load.prefill == "dropped":
            backend = graph[phase].backend
            what = f"{phase:<8} {backend}: dropped while loading, runs eagerly ({clean(load.why)})"
            yield from wrapped(
                what if backend != "disabled" else f"{phase:<8} {_graph(graph[phase], phase)}",
                indent="  ",
                hanging="    ",
            )
        elif phase in graph:
            yield f"  {phase:<8} {_graph(graph[phase], phase)}"
    fraction = verdict.prediction.args.get("mem_fraction_static")
    backend = verdict.prediction.args.get("attention_backend")
    if fraction is not None:
        yield f"  attention backend {backend}, static memory fraction {fraction:.3f}"


def _graph(graph: PhaseGraph, phase: Phase) -> str:
    if graph.backend in (None, "disabled"):
        return f"{graph.backend or 'none'}: runs eagerly"
    if not graph.bs:
        return f"{graph.backend:<10} sizes chosen while loading"
    sizes = f"{len(graph.bs)} size{'s' if len(graph.bs) > 1 else ''}"
    span = f"{graph.bs[0]} to {graph.bs[-1]}" if len(graph.bs) > 1 else str(graph.bs[0])
    return f"{graph.backend:<10} {sizes}, {span} {_UNITS[phase]}"


def _ledger(ledger: Sequence[Decision]) -> Iterator[str]:
    yield "Ledger (who changed what, and why)"
    if not ledger:
        yield "  nothing was changed"
    for decision in ledger:
        change = f"{decision.key}: {_value(decision.before)} -> {_value(decision.after)}"
        source = f" [{decision.source}]" if decision.source else ""
        line = f"{decision.layer}: {change}; {decision.why}{source}"
        yield from wrapped(clean(line), indent="  ", hanging="    ")


def _more(verdict: Verdict) -> Iterator[str]:
    yield from _plan(verdict.plan or {})
    if verdict.prediction.log:
        yield "What the engine would print"
        for line in verdict.prediction.log:
            yield from wrapped(clean(line), indent="  ", hanging="    ")
    if verdict.prediction.unexamined:
        listed = ", ".join(verdict.prediction.unexamined)
        yield from wrapped(f"Without bearing on graphs: {clean(listed)}", hanging="  ")


def _plan(plan: Mapping[str, Any]) -> Iterator[str]:
    """How many graphs, in which order, at what cost by which source, and what has none."""
    if plan:
        yield "Plan (estimates, each with its source; nothing here is measured)"
    for phase in PHASES:
        if phase not in plan:
            continue
        part = plan[phase]
        text = f"{phase}: no graph"
        if part["graphs"]:
            sizes = part["sizes"]
            text = f"{phase}: {part['graphs']} graphs, from {sizes[0]} down to {sizes[-1]} {_UNITS[phase]}"
        for what in ("memory", "time"):
            if part[what] is not None:
                text += f"; {what} {_range(part[what])}"
        yield from wrapped(clean(f"{text}. Runs eagerly: {part['eager']}."), indent="  ", hanging="    ")


def _range(estimate: Mapping[str, Any]) -> str:
    high = "" if estimate["high"] is None else f" to {estimate['high']:g}"
    sources = " and ".join(dict.fromkeys(s for s in (estimate["low_source"], estimate["high_source"]) if s))
    return f"{estimate['low']:g}{high} {estimate['unit']} ({sources})"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) > _SHOWN_SIZES:
        return f"{len(value)} values, {value[0]} to {value[-1]}"
    return str(value)


def _count(answers: Sequence[Answer]) -> str:
    kinds = [answer.verdict.verdict if answer.verdict else "unusable" for answer in answers]
    parts = [
        f"{kinds.count(kind)} {kind}" for kind in ("accepted", "adjusted", "rejected", "unusable") if kind in kinds
    ]
    return f"{len(answers)} launches: {', '.join(parts)}"
