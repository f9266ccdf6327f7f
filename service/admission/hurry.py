"""A resolver for answers that are due: what it cannot learn in time it does not wait for."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from engine.launch import ModelRef
from engine.models.facts import ModelFacts
from engine.models.resolver import ModelResolver

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_TRANSPORT_S = 0.2
"""What is left of a caller's limit for the way there and back."""


@dataclass(frozen=True, slots=True)
class Hurried:
    """Resolves models until ``due`` (monotonic seconds)."""

    resolver: ModelResolver
    due: float

    def resolve(self, ref: ModelRef) -> ModelFacts:
        """As the resolver does, in the time that is left."""
        return self.resolver.resolve(ref, wait_s=max(0.0, self.due - time.monotonic()))


def seconds(duration: str) -> float | None:
    """A duration as the API server writes it, in seconds; None where it is none.

    >>> seconds("2s"), seconds("1m0.5s"), seconds("500ms"), seconds("soon")
    (2.0, 60.5, 0.5, None)
    """
    parts = _PARTS.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def within(wait_s: float, limit: str | None) -> float:
    """How long the answer may take: ``wait_s``, or less where the caller's own limit is shorter."""
    asked = seconds(limit) if limit else None
    return wait_s if asked is None else max(0.05, min(wait_s, asked - _TRANSPORT_S))
