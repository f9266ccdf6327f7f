"""The product's processes, each killable, and startable again as it was."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from api_tests.material import ROOT
from api_tests.planted import plant_settings
from api_tests.server import free_port


class Part:
    """One process with its environment; its log is the file ``log``, over all its lives."""

    def __init__(self, name: str, words: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._words = words
        plant_settings(environment)
        self._environment = clean(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id, of this life or of the last."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, if it does not live."""
        if not self.running:
            with self.log.open("ab") as output:
                self._process = subprocess.Popen(
                    [sys.executable, *self._words],
                    cwd=ROOT,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def stop(self, wait_s: float = 60) -> int:
        """SIGTERM, and wait; the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(wait_s)


def clean(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without graphgate's settings, and with these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GRAPHGATE_", "HF_", "OTEL_"))}
    return {**kept, "GRAPHGATE_OFFLINE": "1", **settings}


def api_part(folder: Path, settings: Mapping[str, str], name: str = "api") -> tuple[Part, str]:
    """The API, and its address, which stays the same."""
    port = free_port()
    part = Part(name, ["-m", "service.server", "127.0.0.1", str(port)], settings, folder)
    return part, f"http://127.0.0.1:{port}"


def worker_part(folder: Path, settings: Mapping[str, str], name: str) -> Part:
    """A worker process."""
    return Part(name, ["-m", "service", "worker"], settings, folder)


@contextlib.contextmanager
def started(*parts: Part) -> Iterator[None]:
    """The parts live within the block, and do not survive it."""
    try:
        for part in parts:
            part.start()
        yield
    finally:
        for part in parts:
            part.kill()


def wait_until(what: Callable[[], Any], why: str, limit_s: float = 60, *, part: Part | None = None) -> Any:
    """What the call returns, once that is true; errors of a connection count as not yet. ``part`` must live."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        assert part is None or part.running, part.log.read_text(errors="replace")[-2000:]
        with contextlib.suppress(httpx.TransportError):
            found = what()
            if found:
                return found
        time.sleep(0.05)
    raise AssertionError(f"{why}: not within {limit_s:g} s")


def client(url: str) -> httpx.Client:
    """A client of that address alone; the environment's proxies are left aside."""
    return httpx.Client(base_url=url, timeout=20, trust_env=False)


def answers(api: httpx.Client) -> bool:
    """Whether the API answers."""
    return api.get("/livez").status_code == 200
