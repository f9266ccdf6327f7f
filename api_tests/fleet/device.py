"""A device of the tests: a Python that answers as an interpreter with a GPU would, and whose captures take a moment.

It takes the place of GRAPHGATE_WORKER_PYTHON, so that everything above it is the product: the worker, its supervisor,
the process between, the report's form. Each run writes down that it begins and that it ends, and holds a lock of its
capture meanwhile: a second run at the same time finds that lock taken, and writes that down.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
H200 = {"gpu": "NVIDIA H200", "memory_mib": 143_771, "driver": "570.0", "torch": "2.13.0"}
CPU = {"gpu": None, "memory_mib": 16_000, "driver": None, "torch": "2.13.0"}

RUNS = "runs.jsonl"


def make_device(
    folder: Path, machine: Mapping[str, Any], *, effects: Path, least_s: float = 0.02, most_s: float = 0.5
) -> Path:
    """A program in ``folder`` that is such a machine's interpreter; ``effects`` is where its runs are written down.

    A capture takes between ``least_s`` and ``most_s`` seconds, the same at each attempt.
    """
    folder.mkdir(parents=True, exist_ok=True)
    effects.mkdir(parents=True, exist_ok=True)
    told = {
        "name": folder.name,
        "machine": dict(machine),
        "effects": str(effects),
        "least_s": least_s,
        "most_s": most_s,
    }
    program = folder / "python"
    program.write_text(
        f"#!{sys.executable} -S\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from api_tests.fleet.device import main\nmain({json.dumps(json.dumps(told))})\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


def runs(effects: Path) -> list[dict[str, Any]]:
    """What the runs wrote down, in the order in which they did: ``what`` is ``begin``, ``end`` or ``overlap``."""
    file = effects / RUNS
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def running(effects: Path) -> list[dict[str, Any]]:
    """The runs that began and have not ended, the newest first; those whose process is gone are left out."""
    found = runs(effects)
    over = {run["run"] for run in found if run["what"] == "end"}
    return [
        run
        for run in reversed(found)
        if run["what"] == "begin" and run["run"] not in over and Path(f"/proc/{run['pid']}").exists()
    ]


def main(told: str) -> None:
    """Be that interpreter."""
    settings = json.loads(told)
    words = sys.argv[1:]
    if "engine.capture.identify" in words:
        print(json.dumps(settings["machine"]))
        return
    given = dict(pairwise(words))
    job = json.loads(Path(given["--job"]).read_text(encoding="utf-8"))
    _run(settings, job, report=Path(given["--report"]), events=int(given["--events"]))


def _run(settings: dict[str, Any], job: dict[str, Any], *, report: Path, events: int) -> None:
    effects, capture, run = Path(settings["effects"]), job["id"], os.urandom(8).hex()

    def write_down(what: str) -> None:
        told = {"what": what, "capture": capture, "run": run, "pid": os.getpid(), "device": settings["name"]}
        line = json.dumps({**told, "at": time.time()})
        with (effects / RUNS).open("ab", buffering=0) as file:
            file.write(line.encode() + b"\n")

    with (effects / f"{capture}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            write_down("overlap")
        write_down("begin")
        os.write(events, json.dumps({"event": "device.begin", "data": {"run": run}}).encode() + b"\n")
        share = hashlib.sha256(capture.encode()).digest()[0] / 255
        time.sleep(settings["least_s"] + share * (settings["most_s"] - settings["least_s"]))
        write_down("end")
        _write_report(settings, job, run, report)


def _write_report(settings: dict[str, Any], job: dict[str, Any], run: str, file: Path) -> None:
    from engine.capture.report import CaptureReport, PhaseReport

    found = CaptureReport(
        id=job["id"],
        phases={plan["phase"]: PhaseReport(outcome="ok", backend=plan["backend"]) for plan in job["plans"]},
        claim="measured" if settings["machine"]["gpu"] else "emulated",
        device=settings["machine"]["gpu"] or "cpu",
        versions={"run": run},
        complete=True,
    )
    whole = file.with_suffix(".whole")
    whole.write_text(json.dumps(found.to_dict()), encoding="utf-8")
    whole.rename(file)
