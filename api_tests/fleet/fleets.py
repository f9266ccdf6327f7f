"""An API with a real Redis before it, and what tests do with both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from api_tests.fleet.device import make_device, runs
from api_tests.fleet.parts import Part, answers, api_part, client, started, wait_until, worker_part
from api_tests.redis_server import RedisServer, running_redis
from api_tests.service.launches import PLAIN


@dataclass(frozen=True)
class Fleet:
    """An API without workers, its Redis, and what starts workers of a machine."""

    folder: Path
    settings: dict[str, str]
    redis: RedisServer
    server: Part
    api: httpx.Client

    def worker(self, name: str, machine: dict[str, Any], *, most_s: float = 0.1, **settings: str) -> Part:
        """A worker that is such a machine; its captures take up to ``most_s``."""
        device = make_device(
            self.folder / name, machine, effects=self.folder / "effects", least_s=most_s, most_s=most_s
        )
        return worker_part(self.folder, {**self.settings, "GRAPHGATE_WORKER_PYTHON": str(device), **settings}, name)

    def begin(self, hardware: dict[str, Any] | None = None, **capture: Any) -> dict[str, Any]:
        """An accepted capture."""
        body = {"model": PLAIN, "capture": capture} | ({"hardware": hardware} if hardware else {})
        answer = self.api.post("/v1/captures", json=body)
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def get(self, capture: dict[str, Any]) -> dict[str, Any]:
        """The capture as it is now."""
        found: dict[str, Any] = self.api.get(f"/v1/captures/{capture['id']}").json()
        return found

    def ended(self, capture: dict[str, Any]) -> dict[str, Any]:
        """The capture, once it has ended."""
        wait_until(lambda: self.get(capture)["state"] not in ("queued", "running"), f"{capture['id']} ends")
        return self.get(capture)

    def events(self, capture: dict[str, Any]) -> str:
        """All its events, as they are sent."""
        with self.api.stream("GET", f"/v1/captures/{capture['id']}/events") as stream:
            return "".join(stream.iter_text())

    def runs(self, capture: dict[str, Any]) -> list[dict[str, Any]]:
        """How often the device began it."""
        return [
            run for run in runs(self.folder / "effects") if run["what"] == "begin" and run["capture"] == capture["id"]
        ]

    def kinds(self) -> list[str]:
        """The kinds of the workers that are alive."""
        return [worker["kind"] for worker in self.api.get("/v1/workers").json()["items"] if worker["alive"]]


@contextlib.contextmanager
def running_fleet(folder: Path) -> Iterator[Fleet]:
    """One, with short times."""
    with running_redis(folder / "redis") as redis:
        settings = {
            "GRAPHGATE_DATA": str(folder / "data"),
            "GRAPHGATE_BROKER_URL": redis.url,
            "GRAPHGATE_CAPTURE_LEASE_S": "2",
            "GRAPHGATE_RECONCILE_S": "0.3",
            "GRAPHGATE_RESEND_S": "1",
        }
        part, url = api_part(folder, settings)
        with started(part), client(url) as api:
            wait_until(lambda: answers(api), "the API answers", part=part)
            yield Fleet(folder, settings, redis, part, api)
