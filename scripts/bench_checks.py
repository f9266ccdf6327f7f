"""Checks: parsing, prediction, guards, the whole check, the command, and the real engine.

The launches are those of ``api_tests/conformance``. In process every launch is warm (its model and its release were
read before), and the best of its rounds counts. COMMAND reads one JSON case a line (``{"id", "config", "argv",
"env"}``) and writes one JSON answer a line with the engine's own argument resolution; without the option it is what
GRAPHGATE_ENGINE_PYTHON holds, or the one beside the optional test material.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from api_tests.conformance.launches import CONFIGS, Case, cases
from api_tests.material import MATERIAL, ROOT
from engine.errors import QuestionError
from engine.guards import findings_for
from engine.guards.base import Examined
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.models.local import read_local
from engine.preflight import check_facts
from engine.sglang.predict import predict
from engine.sglang.releases import release_named
from engine.sglang.resolution import Refusal
from service.cli.cases import Models, answer_line

RELEASE = "0.5.23"
GPU = "H200"
ENGINE_LAUNCHES = 20
CASE_REPEATS = 20


def launches(gpu: str | None = None) -> list[tuple[Case, Launch, ModelFacts]]:
    """The launches with their models' facts, on one kind of GPU or on all; without those whose model cannot be read."""
    out = []
    for case in cases():
        if gpu not in (None, case.gpu):
            continue
        try:
            facts = read_local((CONFIGS / case.model).with_suffix(".json"))
        except QuestionError:
            continue
        environment = dict(case.environment)
        launch = Launch(
            model=ModelRef(path=case.model), gpu=case.gpu, arguments=case.arguments, environment=environment
        )
        out.append((case, launch, facts))
    return out


def best_us(kinds: Mapping[str, Sequence[Callable[[], object]]], rounds: int) -> dict[str, list[float]]:
    """For each kind the best of ``rounds`` times of each of its calls, in microseconds.

    The kinds take turns, call by call, so that the machine's other load falls on all of them alike.
    """
    best: dict[str, list[float]] = {kind: [float("inf")] * len(calls) for kind, calls in kinds.items()}
    for _ in range(rounds + 1):  # the first round warms up: it is never the best
        for index in range(min(map(len, kinds.values()))):
            for kind, calls in kinds.items():
                started = time.perf_counter_ns()
                calls[index]()
                best[kind][index] = min(best[kind][index], (time.perf_counter_ns() - started) / 1000)
    return best


def in_process(rounds: int) -> dict[str, tuple[float, float]]:
    """Microseconds a launch: the median, and what nineteen in twenty stay below."""
    release, gpu, models = release_named(RELEASE), gpu_named(GPU), Models(CONFIGS)
    asked = launches(GPU)

    def parse(launch: Launch) -> object:
        try:
            return release.options.parse(list(launch.arguments))
        except Refusal as refusal:
            return refusal

    def line(text: bytes) -> str:
        return json.dumps(answer_line(text, models))

    def guards(examined: Examined) -> object:
        # A fresh one: what the guards share is worked out once for each launch.
        return findings_for(
            Examined(launch=examined.launch, facts=examined.facts, gpu=gpu, predicted=examined.predicted)
        )

    predicted = [Examined(launch=a, facts=b, gpu=gpu, predicted=predict(a, b, gpu)) for _, a, b in asked]
    lines = [json.dumps(_case(case)).encode() for case, _, _ in asked]
    calls: dict[str, list[Callable[[], object]]] = {
        "parsing the command line": [partial(parse, launch) for _, launch, _ in asked],
        "prediction, parsing included": [partial(predict, launch, facts, gpu) for _, launch, facts in asked],
        "guards, suggested launches proven": [partial(guards, examined) for examined in predicted],
        "whole check, guards and policy included": [partial(check_facts, launch, facts) for _, launch, facts in asked],
        "case line in, answer line out": [partial(line, text) for text in lines],
    }
    found = best_us(calls, rounds)
    both = zip(found["prediction, parsing included"], found["parsing the command line"], strict=True)
    found["prediction without parsing"] = [whole - parsing for whole, parsing in both]
    return {
        kind: (statistics.median(found[kind]), statistics.quantiles(found[kind], n=20)[-1])
        for kind in sorted(found, key=_SHOWN.index)
    }


_SHOWN = (
    "parsing the command line",
    "prediction without parsing",
    "prediction, parsing included",
    "guards, suggested launches proven",
    "whole check, guards and policy included",
    "case line in, answer line out",
)


def _case(case: Case) -> dict[str, object]:
    return {
        "id": case.line,
        "engine": "sglang",
        "version": RELEASE,
        "gpu": case.gpu,
        "model": f"{case.model}.json",
        "argv": list(case.arguments),
        "env": dict(case.environment),
    }


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of one run by the clock, and of the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - our own commands
    spent = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(rounds: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds (clock, processor) of a bare interpreter, and of ``graphgate check`` from start to exit; in turn."""
    for package in ("engine", "service"):  # as an installation leaves them, whatever this environment says of bytecode
        compileall.compile_dir(ROOT / package, quiet=2)
    config = str(CONFIGS / "qwen3-next.json")
    check = [sys.executable, "-m", "service", "check", config, "--", "--tp-size", "8"]
    bare = [sys.executable, "-c", "pass"]
    runs = [(_seconds(bare), _seconds(check)) for _ in range(rounds + 1)][1:]
    first, second = zip(*runs, strict=True)
    return _median(first), _median(second)


def _median(runs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(clock for clock, _ in runs), statistics.median(processor for _, processor in runs)


def many() -> tuple[int, float, float]:
    """Launches, and launches a second of ``check --cases``: by the clock, and by the processor time it took."""
    text = "".join(json.dumps(_case(case)) + "\n" for case, _, _ in launches()) * CASE_REPEATS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "service", "check", "--cases", str(file), "--models-dir", str(CONFIGS)]
        spent, processor = _seconds(command)
    number = text.count("\n")
    return number, number / spent, number / processor


def real_engine(command: Sequence[str]) -> tuple[float, float] | None:
    """Seconds from start to the first answer of the real engine, and of each further answer; None: it did not run."""
    wanted = [case for case, _, _ in launches(GPU)][:ENGINE_LAUNCHES]
    rows = [
        {"id": n, "config": str(CONFIGS / f"{c.model}.json"), "argv": list(c.arguments), "env": dict(c.environment)}
        for n, c in enumerate(wanted)
    ]
    started = time.perf_counter()
    times: list[float] = []
    with subprocess.Popen(  # noqa: S603 - the command that was asked for
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            return None
        process.stdin.write("".join(json.dumps(row) + "\n" for row in rows))
        process.stdin.close()
        times.extend(time.perf_counter() - started for line in process.stdout if line.startswith("{"))
    if len(times) < len(rows):
        return None
    return times[0], (times[-1] - times[0]) / (len(times) - 1)


def engine_command(asked: str | None) -> list[str] | None:
    """The command that runs the real engine's resolution: the one asked for, or the one that lies by the material."""
    asked = asked or os.environ.get("GRAPHGATE_ENGINE_PYTHON")
    if asked:
        return shlex.split(asked)
    beside = MATERIAL / "oracle" / "oracle"
    return [str(beside), "run", RELEASE, GPU] if os.access(beside, os.X_OK) else None


def options(reader: argparse._ArgumentGroup) -> None:
    """What can be asked of this section."""
    reader.add_argument("--engine-command", metavar="COMMAND", help="also GRAPHGATE_ENGINE_PYTHON")
    reader.add_argument("--no-engine", action="store_true")


def run(asked: argparse.Namespace) -> None:
    """Measure and print."""
    number = len(launches(GPU))
    print(f"In process, warm: {number} launches of {RELEASE} on {GPU}, each the best of {asked.rounds} rounds")
    inside = in_process(asked.rounds)
    whole = inside["whole check, guards and policy included"][0]
    for what, (median, most) in inside.items():
        print(f"  {what:<42} {median:9.0f} us   {median / whole:5.2f} of a whole check; 19 in 20 below {most:.0f} us")
    (bare, bare_processor), (check, check_processor) = cold(asked.rounds)
    print(f"Cold start: median of {asked.rounds} from start to exit, by the clock and by processor time")
    print(f"  {'python -c pass':<42} {1000 * bare:9.0f} ms  {1000 * bare_processor:7.0f} ms")
    print(
        f"  {'graphgate check':<42} {1000 * check:9.0f} ms  {1000 * check_processor:7.0f} ms   "
        f"{check / bare:5.1f} x the bare interpreter"
    )
    lines, clock, processor = many()
    print(f"graphgate check --cases: {lines} launches in one process, its start included")
    print(f"  {'by the clock':<42} {clock:9.0f} launches/s")
    print(f"  {'by processor time':<42} {processor:9.0f} launches/s a core")
    command = None if asked.no_engine else engine_command(asked.engine_command)
    answer = real_engine(command) if command else None
    print("The real engine's own argument resolution")
    if answer is None:
        print("  not measured: " + ("it did not answer" if command else "not here; --engine-command COMMAND runs it"))
        return
    first, further = answer
    print(f"  {'start to first answer':<42} {1000 * first:9.0f} ms   {first / check:5.1f} x graphgate check")
    print(f"  {'each further launch':<42} {1e6 * further:9.0f} us   {1e6 * further / whole:5.0f} x a whole check")
