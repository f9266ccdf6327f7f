"""Workers that do the worst, with processes of their own: each end has its name, and nothing is left of any."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from api_tests.capture.jobs import job
from api_tests.capture.workers import alive, gone, impostor, outcomes
from api_tests.material import ROOT
from engine.capture.job import CaptureJob
from engine.capture.supervisor import CaptureEvent, Supervisor

OPENING = "leave_family()\nevent('prefill.capture.begin', sizes=[4])\n"


@dataclass(frozen=True)
class Worst:
    """What a worker does, and what is to be said of it."""

    outcome: str
    exit: str
    type: str
    body: str


WORST = {
    "hangs": Worst("timeout", "stopped after 1 s", "CaptureTimeout", "time.sleep(600)"),
    "is deaf to SIGTERM": Worst(
        "timeout",
        "stopped after 1 s",
        "CaptureTimeout",
        """
        signal.signal(signal.SIGTERM, lambda *_: event('told to end'))
        while True:
            time.sleep(600)
        """,
    ),
    "segfaults": Worst("crashed", "SIGSEGV", "WorkerCrashed", "import ctypes; ctypes.string_at(0)"),
    "aborts": Worst("crashed", "SIGABRT", "WorkerCrashed", "os.abort()"),
    "allocates without end": Worst(
        "oom",
        "stopped above 128 MiB",
        "MemoryLimit",
        """
        held = []
        while True:
            held.append(b'x' * 2**21)
            time.sleep(0.002)
        """,
    ),
    "has its children allocate": Worst(
        "oom",
        "stopped above 128 MiB",
        "MemoryLimit",
        """
        hold = [sys.executable, '-c', 'x = b"x" * (50 << 20); input()']
        for _ in range(4):
            subprocess.Popen(hold, stdin=subprocess.PIPE, start_new_session=True)
        time.sleep(600)
        """,
    ),
    "fails for want of memory": Worst(
        "oom",
        "exit status 1",
        "OutOfMemory",
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**26, 2**26)); held = b'x' * 2**28",
    ),
    "prints a gigabyte": Worst(
        "crashed",
        "stopped after 67108864 bytes of output",
        "OutputLimit",
        "for _ in range(1024): os.write(1, b'z' * 2**20)",
    ),
    "floods its event pipe": Worst(
        "crashed",
        "stopped after 67108864 bytes of output",
        "OutputLimit",
        "while True: event('noise', x='y' * 60000)",
    ),
    "fills the disk": Worst(
        "crashed",
        "SIGXFSZ",
        "WorkerCrashed",
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        with open('big', 'wb') as file:
            file.truncate(2**31 + 1)
        """,
    ),
    "forks and forks": Worst(
        "timeout",
        "stopped after 1 s",
        "CaptureTimeout",
        """
        for _ in range(6):
            if os.fork() == 0:
                os.setsid()
        time.sleep(600)
        """,
    ),
    "exits zero without a report": Worst("infrastructure", "exit status 0", "ReportMissing", "sys.exit(0)"),
    "writes half a report": Worst(
        "infrastructure",
        "exit status 0",
        "ReportUnreadable",
        """report.write_text('{"version": 1, "id": "test", "phases": {')""",
    ),
    "writes an endless report": Worst(
        "infrastructure", "exit status 0", "ReportTooLarge", "report.write_bytes(b' ' * (17 * 2**20))"
    ),
}


def limited(timeout_s: float) -> CaptureJob:
    """A job that may hold 64 MiB beyond the supervisor's allowance."""
    small = job()
    return replace(small, options=replace(small.options, timeout_s=timeout_s, memory_mib=64))


class Family:
    """The process ids that events told of."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}

    def __call__(self, event: CaptureEvent) -> None:
        if event.name == "worker.spawned":
            self.pids["worker"] = event.data["pid"]
        if event.name == "family":
            self.pids |= event.data

    @property
    def left(self) -> set[str]:
        return {who for who, pid in self.pids.items() if alive(pid)}


@pytest.mark.parametrize("name", WORST)
def test_nothing_is_left_of_a_worker_that(tmp_path: Path, name: str) -> None:
    worst = WORST[name]
    python = impostor(tmp_path, OPENING + textwrap.dedent(worst.body))
    family, work = Family(), tmp_path / "work"
    seconds = 1.0 if worst.outcome == "timeout" else 60.0
    report = Supervisor(work, python, overhead_mib=64).run(limited(seconds), on_event=family)
    assert report.exit == worst.exit, report.output_tail
    assert outcomes(report) == {"prefill": worst.outcome, "decode": "skipped"}
    assert report.error is not None
    assert report.error.type == worst.type
    assert not report.complete
    assert set(family.pids) == {"worker", "near", "far"}
    assert family.left == set()
    assert list(work.iterdir()) == []
    assert ("told to end" in report.order) == (name == "is deaf to SIGTERM")


def test_a_worker_whose_warden_was_killed_is_ended_with_what_carries_its_mark(tmp_path: Path) -> None:
    python = impostor(tmp_path, OPENING + "os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)")
    family, work = Family(), tmp_path / "work"
    report = Supervisor(work, python).run(limited(60.0), on_event=family)
    assert report.exit == "killed with its warden"
    assert outcomes(report) == {"prefill": "infrastructure", "decode": "skipped"}
    # Nobody can know of a process without parent, mark or warden: the test ends it.
    assert family.left == {"far"}
    os.kill(family.pids["far"], signal.SIGKILL)
    assert list(work.iterdir()) == []


SUPERVISOR = """
import sys
from pathlib import Path
from api_tests.capture.jobs import job
from engine.capture.supervisor import Supervisor

def tell(event):
    if event.name in ("worker.spawned", "family"):
        print(*event.data.values(), flush=True)

Supervisor(Path(sys.argv[1]), sys.argv[2]).run(job(timeout_s=600), on_event=tell)
"""


def supervised(work: Path, python: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A supervisor in a process of its own, and the three processes of its capture."""
    command = [sys.executable, "-c", SUPERVISOR, str(work), python]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert process.stdout is not None
    told = process.stdout.readline() + process.stdout.readline()
    return process, [int(word) for word in told.split()]


def test_nothing_is_left_of_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    process, pids = supervised(work, impostor(tmp_path, OPENING + "time.sleep(600)"))
    with process:
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
        process.kill()
    assert all(gone(pid) for pid in pids)
    end = time.monotonic() + 10
    while list(work.iterdir()):  # the warden removes it, last of all
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_next_supervisor_sweeps_up_where_the_warden_was_killed_too(tmp_path: Path) -> None:
    work = tmp_path / "work"
    process, (worker, near, far) = supervised(work, impostor(tmp_path, OPENING + "time.sleep(600)"))
    with process:
        warden = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        assert Supervisor(work).sweep() == 0, "a capture that runs is nobody else's to sweep up"
        process.send_signal(signal.SIGSTOP)  # so that it cannot end what its warden leaves
        os.kill(warden, signal.SIGKILL)
        process.kill()
    assert gone(worker)
    assert alive(near)
    (folder,) = work.iterdir()
    assert Supervisor(work).sweep() == 1
    assert not folder.exists()
    assert gone(near)
    os.kill(far, signal.SIGKILL)  # without parent, mark or warden: nobody can know of it
