"""Leaves a hub that fails alone for a while, so that a failing hub costs a few waits and not one a model."""

from __future__ import annotations

import threading
import time
from typing import Literal

from engine.errors import HubUnavailable

_LONGEST_QUIET_S = 120.0

State = Literal["closed", "open", "half-open"]


class HubUnreachable(HubUnavailable):
    """No answer at all: no connection, or none in time. An answer with an error status is not of this kind."""


class HubSlow(HubUnreachable):
    """No answer in time."""


class HubBreaker:
    """A circuit breaker, safe to share between threads.

    Closed, every question goes through. After ``failures`` in a row (no answer, a server's error, a request to wait) it
    is open for ``quiet_s`` seconds: nothing is asked. Then it is half-open: one question goes through as a probe, and
    every other fails at once until the probe has ended. A probe that fails opens it again, for twice as long, up to
    two minutes. ``quiet_s`` 0: it never opens.
    """

    def __init__(self, failures: int, quiet_s: float) -> None:
        self._most = failures
        self._first_quiet_s = quiet_s
        self._quiet_s = quiet_s
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._until: float | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """Closed, open or half-open."""
        with self._lock:
            if self._until is None:
                return "closed"
            return "open" if time.monotonic() < self._until else "half-open"

    @property
    def left_s(self) -> float:
        """For how many more seconds the hub is left alone."""
        with self._lock:
            return 0.0 if self._until is None else max(0.0, self._until - time.monotonic())

    def check(self, model_id: str) -> None:
        """Pass, or fail at once while the hub is left alone. Who passes must say how it ended.

        Raises:
            HubUnreachable: the hub failed just now.
        """
        with self._lock:
            if self._until is None:
                return
            left = self._until - time.monotonic()
            if left <= 0 and not self._probing:
                self._probing = True
                return
            in_a_row = self._in_a_row
        raise HubUnreachable(
            f"The hub is not asked for {model_id}: it failed {in_a_row} times in a row.",
            remedy=f"Give the config itself or a local folder, or ask again in {max(1.0, left):.0f} seconds.",
            field="model.id",
        )

    def succeeded(self) -> None:
        """The hub gave an answer of its own, be it that there is no such model."""
        with self._lock:
            self._in_a_row = 0
            self._until = None
            self._probing = False
            self._quiet_s = self._first_quiet_s

    def failed(self, wait_s: float = 0.0) -> None:
        """The hub failed, or asked to wait so many seconds."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._most or not self._first_quiet_s:
                return
            if self._probing:
                self._quiet_s = min(self._quiet_s * 2, max(_LONGEST_QUIET_S, self._first_quiet_s))
                self._probing = False
            elif self._until is not None:
                return  # a question from before it opened
            self._until = time.monotonic() + max(self._quiet_s, min(wait_s, _LONGEST_QUIET_S))
