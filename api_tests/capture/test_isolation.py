"""The worker process has no secret in its environment and no network, and neither has anything that it starts."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path

import pytest

from api_tests.capture.jobs import job, slow_job
from api_tests.capture.workers import impostor
from engine.capture.environment import KEPT
from engine.capture.supervisor import CaptureEvent, Supervisor

OWN = {"HOME", "TMPDIR", "PYTHONPATH", "PYTHONUNBUFFERED", "CAPTURE_OF_GRAPHGATE"}

CALLER = """
import socket, subprocess, sys

import engine.capture.child as child

PORT = %d
IN_PYTHON = f"import socket; socket.create_connection(('127.0.0.1', {PORT}))"


def call_home(job, journal):
    # By an address, by a name, by datagram; then from processes that this one starts.
    for name, call in {
        "stream": lambda: socket.create_connection(("127.0.0.1", PORT)),
        "datagram": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
        "name": lambda: socket.getaddrinfo("example.org", 443),
    }.items():
        try:
            call()
        except PermissionError as refused:
            print(name, "refused:", refused, flush=True)
        else:
            print(name, "went through", flush=True)
    for name, command in {
        "child": [sys.executable, "-c", IN_PYTHON],
        "shell": ["setsid", "bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{PORT}"],
    }.items():
        done = subprocess.run(command, capture_output=True, text=True)
        print(name, "refused:" if "ermission denied" in done.stderr else "went through", flush=True)
    left, right = socket.socketpair()
    left.send(b"by ear")
    print("neighbour heard", right.recv(9), flush=True)


child.run = call_home
sys.exit(child.main(sys.argv[5:]))
"""


def test_nothing_leaves_the_worker(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        script = tmp_path / "caller"
        script.write_text(f"#!{sys.executable}\n" + CALLER % listener.getsockname()[1])
        script.chmod(0o755)
        report = Supervisor(tmp_path / "work", str(script)).run(job())
        with pytest.raises(TimeoutError):
            listener.accept()
    said = report.output_tail.splitlines()
    assert [line.split(":")[0] for line in said] == [
        *("stream refused", "datagram refused", "name refused", "child refused", "shell refused"),
        "neighbour heard b'by ear'",
    ]
    assert "no network" in said[0]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own word is asked")
def test_the_kernel_itself_refuses(tmp_path: Path) -> None:
    modes: list[str] = []

    def look(event: CaptureEvent) -> None:
        if event.name == "worker.started":
            assert event.data["network_refused_by"] == "kernel"
            status = Path(f"/proc/{event.data['pid']}/status").read_text()
            modes.extend(re.findall(r"^(?:Seccomp|NoNewPrivs):\t(\d)", status, re.MULTILINE))

    Supervisor(tmp_path).run(slow_job(timeout_s=1.0), on_event=look)
    assert modes == ["1", "2"], "no new privileges, and a filter"


def test_the_worker_sees_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("HF_TOKEN", "GRAPHGATE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "CUDA_API_KEY", "DATABASE_URL"),
        *("GRAPHGATE_DATABASE_URL", "REDIS_URL", "NVIDIA_NGC_LOGIN", "TORCH_HUB_PW", "SSH_AUTH_SOCK", "http_proxy"),
    ):
        monkeypatch.setenv(name, "hush-hush")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    python = impostor(tmp_path, "print(json.dumps(dict(os.environ)))")
    report = Supervisor(tmp_path / "w", python).run(job())
    assert "hush-hush" not in report.output_tail
    environment = json.loads(report.output_tail)
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert set(environment) <= KEPT | OWN
    assert Path(environment["TMPDIR"]).is_relative_to(tmp_path)
