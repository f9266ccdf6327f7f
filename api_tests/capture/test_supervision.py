"""Workers that hang, die, lie or are told to stop: each becomes a report, and nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from api_tests.capture.jobs import LLAMA, job, slow_job
from api_tests.capture.workers import alive, gone, impostor, outcomes
from engine.capture.process import TAIL_BYTES
from engine.capture.supervisor import CaptureEvent, Supervisor

torch_needed = pytest.mark.skipif(find_spec("torch") is None, reason="the worker extra is not installed")


@torch_needed
def test_timeout_ends_the_worker(tmp_path: Path) -> None:
    pids: list[int] = []
    report = Supervisor(tmp_path).run(slow_job(timeout_s=4.0), on_event=lambda e: pids.append(e.data.get("pid", 0)))
    assert outcomes(report)["prefill"] == "timeout"
    # On a busy machine the worker may not have come to a phase yet; then the timeout is every phase's.
    assert outcomes(report)["decode"] == ("skipped" if "prefill.runner.begin" in report.order else "timeout")
    assert report.error is not None
    assert "4 s" in report.error.message
    assert report.wall_s is not None
    assert report.wall_s < 30
    assert gone(pids[0])


@torch_needed
def test_cancelling_stops_the_worker(tmp_path: Path) -> None:
    cancel = threading.Event()
    pids: list[int] = []

    def stop(event: CaptureEvent) -> None:
        if event.name == "worker.spawned":
            pids.append(event.data["pid"])
        if event.name == "prefill.capture.begin":
            cancel.set()

    report = Supervisor(tmp_path).run(slow_job(), on_event=stop, cancel=cancel)
    assert outcomes(report) == {"prefill": "cancelled", "decode": "skipped"}
    assert gone(pids[0])
    assert list(tmp_path.iterdir()) == []


@torch_needed
@pytest.mark.parametrize(
    ("number", "outcome", "word"),
    [
        (signal.SIGKILL, "oom", "suspected"),
        (signal.SIGSEGV, "crashed", "SIGSEGV"),
        (signal.SIGTERM, "crashed", "SIGTERM"),
    ],
)
def test_a_worker_killed_from_outside(tmp_path: Path, number: signal.Signals, outcome: str, word: str) -> None:
    pids: list[int] = []

    def kill(event: CaptureEvent) -> None:
        if event.name == "worker.spawned":
            pids.append(event.data["pid"])
        if event.name == "prefill.capture.begin":
            os.kill(pids[0], number)

    report = Supervisor(tmp_path).run(slow_job(), on_event=kill)
    assert outcomes(report) == {"prefill": outcome, "decode": "skipped"}
    assert report.error is not None
    assert word in report.error.message
    assert report.exit == number.name
    assert not report.complete


@torch_needed
def test_memory_limit_is_an_outcome(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(LLAMA, sizes=(4096,), prefill_sizes=(4096,), memory_mib=64))
    assert outcomes(report)["prefill"] == "oom"
    assert report.phases["prefill"].error is not None
    assert report.complete


@torch_needed
def test_the_worker_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from api_tests.capture.jobs import slow_job\n"
        "from engine.capture.supervisor import Supervisor\n"
        "def tell(event):\n"
        "    if event.name in ('worker.spawned', 'model.built'): print(event.data.get('pid', 0), flush=True)\n"
        "Supervisor(Path(sys.argv[1])).run(slow_job(), on_event=tell)\n"
    )
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "work")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.stdout.readline()
        assert alive(pid)
        parent.kill()
    assert gone(pid)


def test_exit_status_without_a_report(tmp_path: Path) -> None:
    python = impostor(tmp_path, "print('no such thing'); sys.exit(3)")
    report = Supervisor(tmp_path / "w", python).run(job())
    assert outcomes(report) == {"prefill": "crashed", "decode": "crashed"}
    assert report.exit == "exit status 3"
    assert report.output_tail == "no such thing\n"


@pytest.mark.parametrize("left", ["{", '"text"', '{"version": 99}', '{"version": 1}', "[]", "\\x00"])
def test_an_unreadable_report_is_infrastructure(tmp_path: Path, left: str) -> None:
    python = impostor(tmp_path, f"event('prefill.capture.begin'); report.write_text({left!r})")
    report = Supervisor(tmp_path / "w", python).run(job())
    assert report.phases["prefill"].outcome == "infrastructure"
    assert report.error is not None
    assert report.error.type == "ReportUnreadable"


def test_noise_on_the_event_pipe_and_floods_of_output_are_survived(tmp_path: Path) -> None:
    python = impostor(
        tmp_path,
        """
        fd = int(args['--events'])
        os.write(fd, b'not json\\n{"event": 5}\\n[]\\n\\xff\\xfe\\n')
        for _ in range(40): os.write(fd, b'x' * 60000)
        os.write(fd, b'\\n')
        event('decode.capture.begin')
        for _ in range(2000): print('y' * 1000)
        print('the end')
        """,
    )
    report = Supervisor(tmp_path / "w", python).run(job())
    assert [name for name in report.order if not name.startswith("worker.")] == ["decode.capture.begin"]
    assert len(report.output_tail) <= TAIL_BYTES
    assert report.output_tail.endswith("the end\n")


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    report = Supervisor(tmp_path, python=str(tmp_path / "nothing")).run(job())
    assert outcomes(report) == {"prefill": "infrastructure", "decode": "infrastructure"}
    assert report.error is not None
    assert "nothing" in report.error.message
