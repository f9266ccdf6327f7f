"""Workers that are not the real one, and what the tests ask about processes."""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path

from engine.capture.report import CaptureReport


def alive(pid: int) -> bool:
    """Whether that process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def gone(pid: int, within_s: float = 10.0) -> bool:
    end = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


_PREAMBLE = """
import json, os, pathlib, signal, subprocess, sys, time

args = dict(zip(sys.argv[5::2], sys.argv[6::2]))
report = pathlib.Path(args["--report"])

def event(name, **data):
    os.write(int(args["--events"]), (json.dumps({"event": name, "data": data}) + "\\n").encode())

def leave_family():
    near = subprocess.Popen(["sleep", "600"])  # in this group
    note = pathlib.Path(os.environ["HOME"], "far")  # in a session of its own, its parent gone, its environment bare
    bare = ["setsid", "--fork", "env", "-i", "sh", "-c", f"echo $$ > {note}; exec sleep 600"]
    subprocess.run(bare, check=True, stdin=subprocess.DEVNULL)
    while not (note.exists() and note.read_text().endswith("\\n")):
        time.sleep(0.01)
    event("family", near=near.pid, far=int(note.read_text()))
"""


def impostor(folder: Path, body: str) -> str:
    """An interpreter that runs ``body`` instead of the worker; ``report``, ``event`` and ``leave_family`` are there."""
    script = folder / "impostor"
    script.write_text(f"#!{sys.executable}\n{_PREAMBLE}\n{textwrap.dedent(body)}")
    script.chmod(0o755)
    return str(script)


def outcomes(report: CaptureReport) -> dict[str, str]:
    return {phase: result.outcome for phase, result in report.phases.items()}
