"""Launches that several tests send, and the steps they share."""

from __future__ import annotations

import time
from typing import Any

import httpx

HYBRID = {"id": "Qwen/Qwen3-Next-80B-A3B-Instruct"}
PLAIN = {"id": "meta-llama/Llama-3.1-8B-Instruct"}
FULL_PREFILL = {"prefill": {"backend": "full"}}

REJECTED: dict[str, Any] = {"model": HYBRID, "cuda_graph_config": FULL_PREFILL}
ADJUSTED: dict[str, Any] = {"model": HYBRID, "defaults": FULL_PREFILL}
ACCEPTED: dict[str, Any] = {"model": PLAIN, "cuda_graph_config": FULL_PREFILL}
SMALL_CAPTURE: dict[str, Any] = {"layers": 4, "sizes": 1, "device": "cpu", "timeout_s": 120}
SLOW_CAPTURE: dict[str, Any] = {"layers": 128, "sizes": list(range(1, 129)), "device": "cpu"}
"""Takes minutes: every test that begins one ends it."""


def validate(api: httpx.Client, body: dict[str, Any], **query: str) -> httpx.Response:
    """POST a validation."""
    return api.post("/v1/validations", json=body, params=query)


def wait_for_end(api: httpx.Client, capture: str, limit_s: float = 120) -> dict[str, Any]:
    """The capture, once it has ended."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        found: dict[str, Any] = api.get(f"/v1/captures/{capture}").json()
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.2)
    raise AssertionError(f"the capture {capture} did not end")


def wait_for_state(api: httpx.Client, capture: str, state: str, limit_s: float = 60) -> None:
    """Return once the capture has that state."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if api.get(f"/v1/captures/{capture}").json()["state"] == state:
            return
        time.sleep(0.1)
    raise AssertionError(f"the capture {capture} did not become {state}")
