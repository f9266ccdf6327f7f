"""Capture a launch's graphs on this machine: preflight first, then a fresh process that records and replays them.

  graphgate capture MODEL [options] -- SGLANG-ARGUMENTS

The model is scaled down, its layers kept. On a GPU the claim is "measured"; on a CPU operator graphs stand in and the
claim is "emulated". A rejected launch is not captured unless --on-rejected prove asks for the proof. Progress is
shown on standard error.

Exit codes: 0 every phase is ok, 1 it is not or the launch is rejected, 2 the question is unusable.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import uuid
from pathlib import Path

from engine.capture.job import CaptureJob, CaptureOptions, job_for
from engine.capture.report import CaptureReport
from engine.capture.supervisor import Supervisor
from engine.preflight import check_facts
from engine.verdict import Verdict
from service.cli.answers import EXIT_NO, EXIT_OK, Answer
from service.cli.capture_progress import shown_progress
from service.cli.capture_text import report_text
from service.cli.formats import render
from service.cli.gate import gate
from service.cli.launches import add_launch, facts_of_ref, launch_of
from service.cli.problems import UsageError
from service.cli.tables import document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.usage = "graphgate capture MODEL [options] -- SGLANG-ARGUMENTS"
    add_launch(parser)
    parser.add_argument("--phases", default="prefill,decode", metavar="LIST", help="default %(default)s")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    parser.add_argument("--sizes", metavar="N", help="how many of the sizes, or a list of them: 4,16,64")
    parser.add_argument(
        "--allocation",
        default="decode-owned",
        help="who allocates the state tables: decode-owned, as the engine does, or per-phase (default %(default)s)",
    )
    parser.add_argument(
        "--memory-mib", metavar="N", help="MiB that the capture may take; with --device cuda dimensions are kept to fit"
    )
    parser.add_argument("--timeout", metavar="SECONDS", default="120", help="default %(default)s")
    parser.add_argument("--layers", metavar="N", help="layers of the scaled model")
    parser.add_argument(
        "--engine",
        default="reference",
        help="reference, or sglang: the engine that is installed here, on a GPU (default %(default)s)",
    )
    parser.add_argument(
        "--on-rejected", choices=("refuse", "prove"), default="refuse", help="what to do with a rejected launch"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default %(default)s")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="with the events, as they happen, and the rules of scaling"
    )


def run(asked: argparse.Namespace) -> int:
    """Check, capture, report."""
    options = _options(asked)
    launch = launch_of(asked)
    facts = facts_of_ref(launch.model)
    verdict = check_facts(launch, facts, gate()).verdict
    graph = verdict.effective.graph if verdict.effective is not None else verdict.prediction.graph
    if graph is None or (verdict.effective is None and asked.on_rejected == "refuse"):
        return _refused(asked, Answer(launch=launch, verdict=verdict), provable=graph is not None)
    job = job_for(
        id=uuid.uuid4().hex[:12],
        facts=facts,
        graph=graph,
        options=options,
        chunked_prefill_size=verdict.prediction.args.get("chunked_prefill_size"),
    )
    report = _captured(job, verbose=asked.verbose)
    print(_shown(asked, verdict, report))
    phases = report.phases.values()
    good = report.error is None and all(phase.outcome in ("ok", "skipped") for phase in phases)
    return EXIT_OK if good else EXIT_NO


def _shown(asked: argparse.Namespace, verdict: Verdict, report: CaptureReport) -> str:
    if asked.format == "json":
        return document({"verdict": verdict.to_dict(), "report": report.to_dict()})
    return report_text(verdict, report, verbose=asked.verbose)


def _captured(job: CaptureJob, *, verbose: bool) -> CaptureReport:
    """The report; an interrupt ends the capture, and the report says so."""

    cancel = threading.Event()
    before = {number: signal.signal(number, lambda *_: cancel.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with shown_progress(verbose=verbose) as listener:
            return Supervisor(Path(tempfile.gettempdir())).run(job, on_event=listener, cancel=cancel)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refused(asked: argparse.Namespace, answer: Answer, *, provable: bool) -> int:
    print(render(asked.format, [answer], verbose=asked.verbose))
    if provable and asked.format == "text":
        print("\nNot captured, for it is rejected; --on-rejected prove captures it all the same.")
    return EXIT_NO


def _options(asked: argparse.Namespace) -> CaptureOptions:
    given = {
        "phases": [phase.strip() for phase in asked.phases.split(",") if phase.strip()],
        "allocation": asked.allocation,
        "sizes": _sizes(asked.sizes),
        "device": asked.device,
        "memory_mib": _number(asked.memory_mib, "--memory-mib"),
        "timeout_s": _number(asked.timeout, "--timeout"),
        "layers": _number(asked.layers, "--layers"),
        "engine": asked.engine,
    }
    return CaptureOptions.from_dict(given)


def _sizes(text: str | None) -> int | list[int | float] | None:
    if text is None:
        return None
    numbers = [_number(part.strip(), "--sizes") for part in text.split(",")]
    if len(numbers) == 1 and isinstance(numbers[0], int):
        return numbers[0]
    return [number for number in numbers if number is not None]


def _number(text: str | None, option: str) -> int | float | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option} {text[:40]!r} is not a number.", remedy=f"Write {option} 4.") from None
