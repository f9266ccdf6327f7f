"""A whole fleet to be mistreated: API, workers, Redis and PostgreSQL, each killed with SIGKILL and started again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from api_tests.fleet.device import CPU, H200, make_device, running, runs
from api_tests.fleet.parts import Part, answers, api_part, client, wait_until, worker_part
from api_tests.postgres import PostgresServer, running_postgres
from api_tests.redis_server import RedisServer, running_redis
from api_tests.service.launches import PLAIN

VICTIMS = ("worker", "worker", "child", "api", "redis", "postgres")
"""Who is killed in each round, each in a random order; workers die most often."""

ENDED = ("succeeded", "failed", "cancelled", "dead")
LEASE_S = 3.0


@dataclass
class Chaos:
    """One fleet under one seed. ``accepted`` are the ids that were answered with 202, ``cancelled`` those whose
    cancellation was answered; ``kills`` counts who was killed."""

    seed: int
    captures: int
    rounds: int
    folder: Path
    postgres: PostgresServer
    redis: RedisServer
    api: Part
    url: str
    workers: Sequence[Part]
    accepted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    refused: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def effects(self) -> Path:
        """Where the device's runs are written down."""
        return self.folder / "effects"

    def run(self) -> None:
        """Send captures and kill whoever it hits, until all are sent and all rounds are over; then wait for the end."""
        begun = time.monotonic()
        sending = threading.Thread(target=self._send)
        sending.start()
        dice = random.Random(self.seed)  # noqa: S311 - chance that can be repeated
        victims = [victim for _ in range(self.rounds) for victim in dice.sample(VICTIMS, len(VICTIMS))]
        for number, victim in enumerate(victims, 1):
            self._wait_for_progress(number / (len(victims) + 1))
            time.sleep(dice.uniform(0.0, 0.3))
            self._kill(victim, dice)
        sending.join()
        self._wait_for_the_end()
        self.seconds = time.monotonic() - begun

    def _send(self) -> None:
        dice = random.Random(-self.seed)  # noqa: S311 - chance that can be repeated
        with client(self.url) as api:
            while len(self.accepted) < self.captures:
                body = {"model": PLAIN, "capture": {"device": dice.choice(("auto", "cpu", "cpu", "cuda"))}}
                with contextlib.suppress(httpx.TransportError):
                    answer = api.post("/v1/captures", json=body)
                    if answer.status_code == 202:
                        self.accepted.append(answer.json()["id"])
                        if dice.random() < 0.1:
                            self._cancel(api, dice.choice(self.accepted[-20:]))
                        continue
                    self.refused += 1
                    assert answer.status_code == 503, answer.text
                time.sleep(0.1)

    def _cancel(self, api: httpx.Client, capture: str) -> None:
        if api.delete(f"/v1/captures/{capture}").status_code in (200, 202):
            self.cancelled.append(capture)

    def _kill(self, victim: str, dice: random.Random) -> None:
        pause = dice.uniform(0.0, 0.6)
        worker = self._busy(dice) if victim == "worker" else self.workers[0]
        parts: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "worker": (worker.kill, worker.start),
            "child": (self._kill_a_child, lambda: None),
            "api": (self.api.kill, self.api.start),
            "redis": (self.redis.kill, self.redis.start),
            "postgres": (self.postgres.kill, self.postgres.start),
        }
        kill, start = parts[victim]
        kill()
        self.kills[victim] += 1
        time.sleep(pause)
        start()

    def _running(self) -> dict[str, Any] | None:
        """The run that began last of those that go on, waited for a moment."""
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for run in running(self.effects):
                return run
            time.sleep(0.01)
        return None

    def _kill_a_child(self) -> None:
        run = self._running()
        if run is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(run["pid"], signal.SIGKILL)

    def _busy(self, dice: random.Random) -> Part:
        """A worker that runs a capture; any, where none does."""
        run = self._running()
        return next((part for part in self.workers if run and part.name == run["device"]), dice.choice(self.workers))

    def _wait_for_progress(self, share: float) -> None:
        """Until that share of the captures has been begun; not long, since what was killed may be why it is not."""
        end = time.monotonic() + 4
        while len(runs(self.effects)) < 2 * share * self.captures and time.monotonic() < end:
            time.sleep(0.05)

    def _wait_for_the_end(self) -> None:
        with client(self.url) as api:

            def over() -> bool:
                pages = [api.get("/v1/captures", params={"state": state}) for state in ("queued", "running")]
                return all(page.status_code == 200 and page.json()["items"] == [] for page in pages)

            wait_until(over, "every capture ends", 200)


@contextlib.contextmanager
def fleet(folder: Path, seed: int, *, captures: int = 200, rounds: int = 3) -> Iterator[Chaos]:
    """A fleet of one API, two workers with a GPU and two without, over PostgreSQL and Redis. Redis keeps what it has on
    even seeds, and forgets everything at each kill on odd ones."""
    with (
        running_postgres(durable=True) as postgres,
        running_redis(folder / "redis", appendonly=seed % 2 == 0) as redis,
    ):
        settings = {
            "GRAPHGATE_DATA": str(folder / "data"),
            "GRAPHGATE_DATABASE_URL": postgres.fresh_database(),
            "GRAPHGATE_DATABASE_WAIT_S": "2",
            "GRAPHGATE_BROKER_URL": redis.url,
            "GRAPHGATE_CAPTURE_LEASE_S": f"{LEASE_S:g}",
            "GRAPHGATE_RECONCILE_S": "0.5",
            "GRAPHGATE_RESEND_S": "2",
        }
        workers = []
        for name, machine in (("gpu-1", H200), ("gpu-2", H200), ("cpu-1", CPU), ("cpu-2", CPU)):
            device = make_device(folder / name, machine, effects=folder / "effects", most_s=0.3)
            workers.append(worker_part(folder, {**settings, "GRAPHGATE_WORKER_PYTHON": str(device)}, name))
        api, url = api_part(folder, settings)
        chaos = Chaos(seed, captures, rounds, folder, postgres, redis, api, url, workers)
        try:
            api.start()
            with client(url) as asking:
                wait_until(lambda: answers(asking), "the API answers")
                for worker in workers:
                    worker.start()
                wait_until(
                    lambda: len(asking.get("/v1/workers").json()["items"]) == len(workers), "workers register", 180
                )
            yield chaos
        finally:
            for part in (*workers, api):
                part.kill()


@dataclass(frozen=True)
class Found:
    """What became of it: every capture as the API tells it in the end, its events, and the device's runs of it."""

    captures: dict[str, dict[str, Any]]
    events: dict[str, list[str]]
    runs: dict[str, list[dict[str, Any]]]

    @classmethod
    def after(cls, chaos: Chaos) -> Found:
        """Asked once everything has ended."""
        captures: dict[str, dict[str, Any]] = {}
        events: dict[str, list[str]] = {}
        with client(chaos.url) as api:
            for identity in _all_ids(api):
                captures[identity] = api.get(f"/v1/captures/{identity}").json()
                with api.stream("GET", f"/v1/captures/{identity}/events") as stream:
                    events[identity] = [line[7:] for line in stream.iter_lines() if line.startswith("event: ")]
        by_capture: dict[str, list[dict[str, Any]]] = {identity: [] for identity in captures}
        for run in runs(chaos.effects):
            by_capture[run["capture"]].append(run)
        return cls(captures, events, by_capture)

    @property
    def states(self) -> Counter[str]:
        """How many captures ended how."""
        return Counter(capture["state"] for capture in self.captures.values())

    def wrong(self, chaos: Chaos) -> list[str]:
        """Every broken promise, in words; none is how it must be."""
        found = [f"{identity} was accepted and is gone" for identity in chaos.accepted if identity not in self.captures]
        for identity, capture in self.captures.items():
            runs_of = self.runs[identity]
            ends = [event for event in self.events[identity] if event in ENDED]
            if ends != [capture["state"]]:
                found.append(f"{identity} is {capture['state']} and ended as {ends}")
            if any(run["what"] == "overlap" for run in runs_of):
                found.append(f"{identity} ran twice at the same time")
            if capture["attempts"] > 3:
                found.append(f"{identity} was begun {capture['attempts']} times")
            if capture["state"] in ("dead", "failed", "cancelled") and not capture["reason"]:
                found.append(f"{identity} is {capture['state']} without a reason")
            if capture["state"] == "cancelled" and identity not in chaos.cancelled:
                found.append(f"{identity} was cancelled and nobody had asked for it")
            found += self._wrong_report(identity, capture, runs_of)
        return found

    def _wrong_report(self, identity: str, capture: dict[str, Any], runs_of: list[dict[str, Any]]) -> list[str]:
        """The report is that of the last run, which came to its end: no later one began, and no other one counts."""
        report = capture["report"]
        if capture["state"] != "succeeded" or not report["complete"]:
            return []
        reported = report["versions"]["run"]
        begun = [run["run"] for run in runs_of if run["what"] == "begin"]
        ended = [run["run"] for run in runs_of if run["what"] == "end"]
        if begun[-1] == reported and reported in ended:
            return []
        return [f"{identity} reports the run {reported} of {begun}, of which {ended} ended"]

    @property
    def struck(self) -> int:
        """How many captures have a run that began and never ended: the chaos did hit."""
        return sum(
            {run["run"] for run in runs_of if run["what"] == "begin"}
            > {run["run"] for run in runs_of if run["what"] == "end"}
            for runs_of in self.runs.values()
        )

    @property
    def repeated(self) -> int:
        """How many captures were begun more than once."""
        return sum(len([run for run in runs_of if run["what"] == "begin"]) > 1 for runs_of in self.runs.values())


def _all_ids(api: httpx.Client) -> Iterator[str]:
    cursor: dict[str, str] = {}
    while True:
        page = api.get("/v1/captures", params={"limit": 200, **cursor}).json()
        yield from (item["id"] for item in page["items"])
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}
