"""Speed, side by side in one run: parsing, prediction, the whole check, the command, and the real engine where it is.

    python scripts/bench.py [--rounds 5] [--engine COMMAND | --no-engine]

The launches are those of ``api_tests/conformance``. In process every launch is warm (its model and its release were
read before). COMMAND reads one JSON case a line (``{"id", "config", "argv", "env"}``) and writes one answer a line with
the engine's own argument resolution; without it, one beside the optional test material is taken. The machine's other
load shows in every figure; the ratios, measured in the same minutes, are what to compare.
"""

from __future__ import annotations

import argparse
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
CASE_REPEATS = 5


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


def medians_us(kinds: Mapping[str, Sequence[Callable[[], object]]], rounds: int) -> dict[str, float]:
    """For each kind the median over its calls of the best of ``rounds`` times, in microseconds.

    The kinds take turns, call by call, so that the machine's other load falls on all of them alike.
    """
    best: dict[str, list[float]] = {kind: [float("inf")] * len(calls) for kind, calls in kinds.items()}
    for _ in range(rounds + 1):  # the first round warms up: it is never the best
        for index in range(min(map(len, kinds.values()))):
            for kind, calls in kinds.items():
                started = time.perf_counter_ns()
                calls[index]()
                best[kind][index] = min(best[kind][index], (time.perf_counter_ns() - started) / 1000)
    return {kind: statistics.median(times) for kind, times in best.items()}


def in_process(rounds: int) -> dict[str, float]:
    """Microseconds a launch."""
    release, gpu, models = release_named(RELEASE), gpu_named(GPU), Models(CONFIGS)
    asked = launches(GPU)

    def parse(launch: Launch) -> object:
        try:
            return release.options.parse(list(launch.arguments))
        except Refusal as refusal:
            return refusal

    def line(text: bytes) -> str:
        return json.dumps(answer_line(text, models))

    lines = [json.dumps(_case(case)).encode() for case, _, _ in asked]
    calls: dict[str, list[Callable[[], object]]] = {
        "parsing the command line": [partial(parse, launch) for _, launch, _ in asked],
        "prediction, parsing included": [partial(predict, launch, facts, gpu) for _, launch, facts in asked],
        "whole check, guards and policy included": [partial(check_facts, launch, facts) for _, launch, facts in asked],
        "case line in, answer line out": [partial(line, text) for text in lines],
    }
    found = medians_us(calls, rounds)
    parsing = found["parsing the command line"]
    return {**found, "prediction without parsing": found["prediction, parsing included"] - parsing}


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


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - our own commands
    return time.perf_counter() - started


def cold(rounds: int) -> tuple[float, float]:
    """Seconds of a bare interpreter, and of ``graphgate check`` from start to exit; taken in turn."""
    config = str(CONFIGS / "qwen3-next.json")
    check = [sys.executable, "-m", "service", "check", config, "--", "--tp-size", "8"]
    bare = [sys.executable, "-c", "pass"]
    pairs = [(_seconds(bare), _seconds(check)) for _ in range(rounds + 1)][1:]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def many() -> tuple[int, float, float]:
    """Launches, and launches a second of ``check --cases``: by the clock, and by the processor time it took."""
    text = "".join(json.dumps(_case(case)) + "\n" for case, _, _ in launches()) * CASE_REPEATS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        file.write_text(text, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = _seconds([sys.executable, "-m", "service", "check", "--cases", str(file), "--models-dir", str(CONFIGS)])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
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
    if asked:
        return shlex.split(asked)
    beside = MATERIAL / "oracle" / "oracle"
    return [str(beside), "run", RELEASE, GPU] if os.access(beside, os.X_OK) else None


def main() -> int:
    """Measure and print."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rounds", type=int, default=5)
    reader.add_argument("--engine", metavar="COMMAND")
    reader.add_argument("--no-engine", action="store_true")
    asked = reader.parse_args()
    number = len(launches(GPU))
    print(f"In process, warm: median of {number} launches on {GPU}, each the best of {asked.rounds} rounds")
    inside = in_process(asked.rounds)
    whole = inside["whole check, guards and policy included"]
    for what, microseconds in inside.items():
        print(f"  {what:<42} {microseconds:9.0f} us   {microseconds / whole:5.2f} of a whole check")
    bare, check = cold(asked.rounds)
    print("Cold start: median from start to exit")
    print(f"  {'python -c pass':<42} {1000 * bare:9.0f} ms")
    print(f"  {'graphgate check':<42} {1000 * check:9.0f} ms   {check / bare:5.1f} x the bare interpreter")
    lines, clock, processor = many()
    print(f"graphgate check --cases: {lines} launches in one process, its start included")
    print(f"  {'by the clock':<42} {clock:9.0f} launches/s")
    print(f"  {'by processor time':<42} {processor:9.0f} launches/s a core")
    command = None if asked.no_engine else engine_command(asked.engine)
    answer = real_engine(command) if command else None
    print("The real engine's own argument resolution")
    if answer is None:
        print("  not measured: " + ("it did not answer" if command else "not here; --engine COMMAND runs it"))
        return 0
    first, further = answer
    print(f"  {'start to first answer':<42} {1000 * first:9.0f} ms   {first / check:5.1f} x graphgate check")
    print(f"  {'each further launch':<42} {1e6 * further:9.0f} us   {1e6 * further / whole:5.0f} x a whole check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
