"""Leaves a hub that does not answer alone for a while, so that a batch of models waits for it a few times only."""

from __future__ import annotations

import threading
import time

from engine.errors import HubUnavailable

_IN_A_ROW = 3
_LONGEST_QUIET_S = 15.0


class HubUnreachable(HubUnavailable):
    """No answer at all: no connection, or none in time. An answer with an error status is not of this kind."""


class HubGate:
    """Counts look-ups without an answer; after three in a row the hub is not asked for some seconds.

    Safe to share between threads.
    """

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = min(quiet_s, _LONGEST_QUIET_S)
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._until = 0.0

    def check(self, model_id: str) -> None:
        """Pass, or fail at once while the hub is left alone.

        Raises:
            HubUnreachable: the hub did not answer just now.
        """
        with self._lock:
            left = self._until - time.monotonic()
        if left > 0:
            raise HubUnreachable(
                f"The hub is not asked for {model_id}: it did not answer {_IN_A_ROW} times in a row.",
                remedy=f"Give the config itself or a local folder, or ask again in {left:.0f} seconds.",
                field="model.id",
            )

    def answered(self) -> None:
        """The hub gave an answer, good or bad."""
        with self._lock:
            self._in_a_row = 0

    def silent(self) -> None:
        """The hub gave no answer."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= _IN_A_ROW:
                self._in_a_row = 0
                self._until = time.monotonic() + self._quiet_s
