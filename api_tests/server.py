"""The service in a child process, on a free port, over a data folder that the test owns."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from api_tests.material import ROOT
from api_tests.planted import plant_settings

START_S = 60.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers at ``url``; its log is the file ``log``."""

    process: subprocess.Popen[bytes]
    url: str
    data: Path
    log: Path

    def client(self, timeout: float = 60.0) -> httpx.Client:
        """A client of this server alone; proxies of the environment are left aside."""
        return httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)

    def stop(self, number: int = signal.SIGTERM, wait_s: float = 60.0) -> int:
        """Send the signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(wait_s)


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_server(data: Path, **settings: str) -> Iterator[RunningServer]:
    """A server over ``data``; ``settings`` are further environment variables. It is ended when the block ends."""
    port = free_port()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GRAPHGATE_", "HF_"))}
    environment |= {"GRAPHGATE_DATA": str(data), "HF_HOME": str(data / "hf"), "GRAPHGATE_OFFLINE": "1", **settings}
    plant_settings(settings)
    data.mkdir(parents=True, exist_ok=True)
    log = data / f"server-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "service.server", "127.0.0.1", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = RunningServer(process, f"http://127.0.0.1:{port}", data, log)
    try:
        _wait_until_ready(server)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(45)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _wait_until_ready(server: RunningServer) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if server.process.poll() is not None:
            break
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/livez", timeout=2, trust_env=False).status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{server.log.read_text(errors='replace')[-3000:]}")
