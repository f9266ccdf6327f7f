"""GPU seconds of a caller: how many a capture reserves, and the answer where there are not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.capture.job import CaptureOptions
from service.observation.metrics import Metrics
from service.problem_types import GPU_QUOTA
from service.problems import Problem
from service.security.identity import Identity
from service.store.quotas import Quotas, today, until_tomorrow


@contextmanager
def reserving(
    quotas: Quotas, identity: Identity, capture: str, options: CaptureOptions, metrics: Metrics
) -> Iterator[None]:
    """Reserve the capture's deadline for the time of its acceptance; given back where that ends in an error.

    Nothing is reserved where the caller has no quota, or the capture asks for the CPU.

    Raises:
        Problem: there are not as many GPU seconds: 429 where another day has them, 403 where no day does.
    """
    limit = identity.gpu_seconds
    if limit is None or options.device == "cpu":
        yield
        return
    asked = options.timeout_s
    reserved = quotas.reserve(identity.id, capture, asked, limit=limit)
    if not reserved.granted:
        metrics.refused("quota")
        raise _exhausted(identity, asked, reserved.taken, limit)
    try:
        yield
    except BaseException:
        quotas.release(capture)
        raise


def quota_of(quotas: Quotas, identity: Identity) -> dict[str, Any]:
    """What the caller may use, and how much of today is taken."""
    taken = quotas.taken(identity.id)
    return {
        "identity": identity.id,
        "name": identity.name,
        "scopes": sorted(identity.scopes),
        "rate": identity.rate,
        "gpu_seconds": _gpu_seconds(taken, identity.gpu_seconds),
    }


def _gpu_seconds(taken: float, limit: int | None) -> dict[str, Any]:
    left = None if limit is None else max(0.0, round(limit - taken, 3))
    return {"limit": limit, "taken": round(taken, 3), "left": left, "day": today(), "resets_in_s": until_tomorrow()}


def _exhausted(identity: Identity, asked: float, taken: float, limit: int) -> Problem:
    extra = {"quota": {"name": "gpu-seconds", "asked": asked, **_gpu_seconds(taken, limit)}}
    said = f"The quota gpu-seconds of {identity.name} is {limit} s a day"
    if asked > limit:
        detail = f"{said}, and this capture asks for {asked:g} s: no day has as many. Give a smaller capture.timeout_s."
        return Problem(GPU_QUOTA, detail, status=403, extra=extra)
    detail = f"{said}; {taken:g} s of today are taken, and this capture asks for {asked:g} s (capture.timeout_s)."
    return Problem(GPU_QUOTA, detail, headers={"Retry-After": str(until_tomorrow())}, extra=extra)
