"""``graphgate capture``: real captures on this machine's CPU, in the command's own child process.

Expected: full prefill on a gated-delta-net hybrid ends in the guard's error, as the engine dies there
(https://github.com/sgl-project/sglang/issues/48593); everything else replays as eager runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

from api_tests.cli.command import FULL_PREFILL, LLAMA, QWEN3_NEXT, environment, graphgate
from api_tests.material import ROOT

QUICK = ("--device", "cpu", "--sizes", "1", "--layers", "2")


def test_a_plain_model_replays_as_eager_and_is_called_emulated() -> None:
    done = graphgate("capture", LLAMA, *QUICK)
    assert done.code == 0, done.out + done.err
    assert done.out.startswith("decode ok, prefill ok") or done.out.startswith("prefill ok, decode ok")
    assert "Claim: emulated" in done.out
    assert "measured" not in done.out
    assert "requests  capture ms" in done.out


def test_a_rejected_launch_is_captured_only_to_prove_it() -> None:
    refused = graphgate("capture", QWEN3_NEXT, *QUICK, "--", *FULL_PREFILL)
    assert refused.code == 1
    assert refused.out.startswith("rejected: GG101")
    assert "--on-rejected prove captures it all the same" in refused.out
    proven = graphgate(
        "capture", QWEN3_NEXT, "--device", "cpu", "--sizes", "1", "--on-rejected", "prove", "--verbose", "--format",
        "json", "--", *FULL_PREFILL,
    )  # fmt: skip
    assert proven.code == 1
    document = proven.document
    assert document["verdict"]["verdict"] == "rejected"
    report = document["report"]
    assert report["claim"] == "emulated"
    assert report["phases"]["prefill"]["outcome"] == "guard_refused"
    assert "not initialised" in report["phases"]["prefill"]["error"]["message"]
    assert report["phases"]["decode"]["outcome"] == "ok"
    assert "worker.spawned" in proven.err


def test_what_the_engine_refuses_cannot_be_captured() -> None:
    done = graphgate("capture", LLAMA, *QUICK, "--on-rejected", "prove", "--", "--no-such-option")
    assert done.code == 1
    assert done.out.startswith("rejected: SGLang 0.5.23 refuses this launch")


def test_a_capture_that_takes_too_long_is_ended() -> None:
    done = graphgate("capture", LLAMA, *QUICK, "--timeout", "0.05")
    assert done.code == 1
    assert "timeout" in done.out


def test_progress_is_a_line_for_each_size_where_nobody_watches() -> None:
    done = graphgate("capture", LLAMA, *QUICK)
    lines = done.err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *("prefill captured", "decode captured", "prefill replayed", "decode replayed")
    ]
    assert all(line.endswith(", 1 of 1") for line in lines)


def test_progress_is_a_bar_on_a_terminal_and_leaves_no_trace() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    words = [sys.executable, "-m", "service", "capture", LLAMA, "--device", "cpu", "--sizes", "2", "--layers", "2"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env=environment(TERM="xterm"), text=True
    ) as process:
        os.close(theirs)
        drawn = _everything(ours)
        out, _ = process.communicate(timeout=60)
    assert out.startswith("prefill ok, decode ok")
    assert "\r" not in out
    frames = drawn.decode().split("\r")
    for stage in ("prefill capture", "decode capture", "prefill verify", "decode verify"):
        counts = [re.search(r"\d of \d", frame) for frame in frames if frame.startswith(f"{stage}: |")]
        assert [found[0] for found in counts if found][-1] == "2 of 2", frames
    assert any(re.match(r"replays of each graph: \|.* 3 of 7", frame) for frame in frames)
    assert any(", size " in frame for frame in frames)
    assert "\n" not in drawn.decode()
    assert frames[-1] == ""
    assert frames[-2].strip() == ""


def _everything(terminal: int) -> bytes:
    """What is written to a terminal until its last writer is gone."""
    drawn = b""
    with open(terminal, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # EIO: Linux's word for that
        while piece := screen.read(4096):
            drawn += piece
    return drawn


def test_an_interrupt_ends_the_capture_and_its_process() -> None:
    words = [sys.executable, "-m", "service", "capture", LLAMA, "--device", "cpu", "--verbose"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment(), text=True
    ) as process:
        assert process.stderr is not None
        spawned = process.stderr.readline()
        assert "worker.spawned" in spawned
        child = int(spawned.rpartition("pid=")[2])
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 1
    assert "cancelled" in out.splitlines()[0]
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
