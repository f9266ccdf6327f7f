"""Validations a second over HTTP, beside a bare route that parses and returns the same models.

The service runs as ``graphgate serve`` runs it, with its SQLite file in a temporary folder; the bare route in a process
of its own under the same server program (uvicorn, uvloop, httptools, one process). A third process sends the same
requests to both over kept connections, in turns, so that the machine's other load falls on both alike. The requests are
launches of ``api_tests/conformance`` on catalogue models. First they are sent as they are, again and again, so that
each was asked before and its verdict is remembered; then each as a launch that was never seen before, by a variable of
its own in its environment. Memory is the service's resident set after the first turn of requests and after the last;
processor time is of the server process, all its threads. At the end the answers that the database holds are counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from _load import NUMBER

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from api_tests.conformance.launches import cases  # noqa: E402 - the launches are the tests'
from api_tests.server import free_port, running_server  # noqa: E402

MODELS = {
    "llama": "meta-llama/Llama-3.1-8B-Instruct",
    "qwen3-moe": "Qwen/Qwen3-30B-A3B",
    "qwen3-next": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3-vl": "Qwen/Qwen3-VL-8B-Instruct",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "gemma3": "google/gemma-3-27b-it",
}
"""Catalogue models in place of the launches' own configurations, which would have to travel with each request."""

PATH = "/v1/validations"
TURNS = 10
TICKS = os.sysconf("SC_CLK_TCK")
START_S = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server on this machine."""

    port: int
    pid: int

    @property
    def processor_s(self) -> float:
        """Seconds of processor time that its process has taken."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    @property
    def resident_mib(self) -> float:
        """Its resident set, in MiB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(slots=True)
class Measured:
    """What was measured of one server over all turns; ``us`` are the requests' microseconds."""

    seconds: float = 0.0
    processor_s: float = 0.0
    errors: int = 0
    us: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.us) / self.seconds

    def line(self, name: str) -> str:
        """For the reader."""
        percentiles = statistics.quantiles(self.us, n=100)
        return (
            f"  {name:<44} {self.rate:9.0f} a second   p50 {percentiles[49] / 1000:6.1f} ms   "
            f"p99 {percentiles[98] / 1000:6.1f} ms   {1e6 * self.processor_s / len(self.us):5.0f} us of processor each"
            f"   {self.errors} errors in {len(self.us)}"
        )


def bodies() -> list[bytes]:
    """The requests' bodies."""
    out = []
    for case in cases():
        if case.model in MODELS:
            launch = {
                "model": {"id": MODELS[case.model]},
                "engine": {"name": "sglang", "version": "0.5.23"},
                "hardware": {"gpu": case.gpu, "count": 8},
                "arguments": list(case.arguments),
                "environment": {**case.environment, "BENCH_REQUEST": NUMBER.decode()},
            }
            out.append(json.dumps(launch).encode())
    return out


def answered(url: str, requests: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The requests that the service takes, each with its answer."""
    headers = {"content-type": "application/json"}
    with httpx.Client(base_url=url, trust_env=False, headers=headers) as client:
        answers = [(request, client.post(PATH, content=request)) for request in requests]
    return [(request, answer.content) for request, answer in answers if answer.status_code == 200]


@contextlib.contextmanager
def bare_server(answers: Path) -> Iterator[Target]:
    """The bare route, giving those answers in turn."""
    port = free_port()
    command = [sys.executable, str(ROOT / "scripts" / "_bare_service.py"), str(port)]
    with answers.open("rb") as text:
        process = subprocess.Popen(command, cwd=ROOT, stdin=text, stderr=subprocess.DEVNULL)  # noqa: S603 - our own
    try:
        end = time.monotonic() + START_S
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
                break
            time.sleep(0.05)
        yield Target(port, process.pid)
    finally:
        process.terminate()
        process.wait(10)


def load(target: Target, requests: list[bytes], connections: int, number: int, into: Measured) -> None:
    """Send so many requests, and add what was measured."""
    command = [
        sys.executable,
        str(ROOT / "scripts" / "_load.py"),
        str(target.port),
        PATH,
        str(connections),
        str(number),
    ]
    before = target.processor_s
    done = subprocess.run(command, input=b"\n".join(requests), capture_output=True, check=True, timeout=1200)  # noqa: S603 - our own
    into.processor_s += target.processor_s - before
    found = json.loads(done.stdout)
    into.seconds += found["seconds"]
    into.errors += found["errors"] + number - len(found["us"])
    into.us += found["us"]


def options(reader: argparse._ArgumentGroup) -> None:
    """This section's options."""
    reader.add_argument("--requests", type=int, default=20_000, help="of each kind (default %(default)s)")
    reader.add_argument("--connections", type=int, default=32, help="at the same time (default %(default)s)")


def run(asked: argparse.Namespace) -> None:
    """Measure and print."""
    turn, connections = max(1, asked.requests // TURNS), asked.connections
    new, again, bare = Measured(), Measured(), Measured()
    memory = []
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder) / "data") as server:
        taken = answered(server.url, bodies())
        requests = [request for request, _ in taken]
        seen = [request.replace(NUMBER, b"00000000") for request in requests]
        answers = Path(folder) / "answers.jsonl"
        answers.write_bytes(b"\n".join(answer for _, answer in taken))
        service = Target(int(server.url.rpartition(":")[2]), server.process.pid)
        with bare_server(answers) as other:
            load(other, requests, connections, 500, Measured())
            for kind, sent in ((again, seen), (new, requests)):
                load(service, sent, connections, len(sent), Measured())
                for _ in range(TURNS):
                    load(service, sent, connections, turn, kind)
                    load(other, sent, connections, turn // 2, bare)
                    memory.append(service.resident_mib)
        with contextlib.closing(sqlite3.connect(server.data / "graphgate.sqlite")) as database:
            (kept,) = database.execute("SELECT count(*) FROM validations").fetchone()
    size = statistics.mean(len(answer) for _, answer in taken)
    print(f"Over HTTP: {connections} connections, {len(taken)} launches in turn, one server process each,")
    print(f"  answers of {size / 1024:.1f} KiB; {os.cpu_count()} processors for server and sender")
    print(new.line("POST /v1/validations, launches never seen"))
    print(again.line("POST /v1/validations, launches asked before"))
    print(bare.line("bare route, same request and answer models"))
    ratios = f"{new.rate / bare.rate:9.2f} never seen, {again.rate / bare.rate:.2f} asked before"
    print(f"  {'of the bare route a second':<44} {ratios}")
    ratios = (
        f"{bare.processor_s / new.processor_s:9.2f} never seen, {bare.processor_s / again.processor_s:.2f} asked before"
    )
    print(f"  {'of the bare route by processor time':<44} {ratios}")
    grown = f"{memory[0]:9.0f} MiB after {turn} requests, {memory[-1]:.0f} MiB after {2 * turn * TURNS}"
    print(f"  {'resident memory of the service':<44} {grown}")
    expected = 3 * len(taken) + len(new.us) + len(again.us)
    print(f"  {'answers kept in its database':<44} {kept:9d} of {expected}")
    if new.errors or again.errors or kept != expected:
        raise SystemExit("not every request was answered, or not every answer kept")
