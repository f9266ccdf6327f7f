"""``graphgate serve`` and ``graphgate worker`` as processes: they start, answer, and end when told to."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from api_tests.cli.command import environment, graphgate
from api_tests.material import ROOT
from api_tests.server import free_port

PATIENCE_S = 60.0


def _started(data: Path, *words: str) -> subprocess.Popen[bytes]:
    log = (data / f"{words[0]}.log").open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "service", *words],
            cwd=ROOT,
            env=environment(GRAPHGATE_DATA=str(data), GRAPHGATE_EMBEDDED_WORKER="off"),
            stdout=log,
            stderr=log,
        )


def _wait_for_log(file: Path, words: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while words not in file.read_text(encoding="utf-8"):
        assert time.monotonic() < end, file.read_text(encoding="utf-8")
        time.sleep(0.1)


def test_serve_answers_and_ends_in_order(tmp_path: Path) -> None:
    port = free_port()
    with _started(tmp_path, "serve", "--port", str(port)) as process:
        try:
            end = time.monotonic() + PATIENCE_S
            while True:
                try:
                    answer = httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False)
                    break
                except httpx.TransportError:
                    assert time.monotonic() < end
                    assert process.poll() is None, (tmp_path / "serve.log").read_text(encoding="utf-8")
                    time.sleep(0.1)
            assert answer.status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = graphgate("serve", "--port", str(taken.getsockname()[1]))
    assert done.code == 2
    assert "cannot be listened on: Address already in use" in " ".join(done.err.split())


def test_a_worker_starts_and_ends_in_order(tmp_path: Path) -> None:
    with _started(tmp_path, "worker") as process:
        try:
            _wait_for_log(tmp_path / "worker.log", "worker started")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
