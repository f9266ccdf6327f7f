"""What became of questions about models of the hub, counted: for status pages and metrics."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

Outcome = Literal["found", "missing", "denied", "failed", "timeout"]
"""How a question over the network ended."""

Answer = Literal["memory", "disk", "negative", "stale", "catalogue", "shared", "refused", "late"]
"""Who answered instead of the network: memory or disk, a failure that is remembered, an earlier answer or the catalogue
because the hub failed; a question that was under way already; the breaker; nobody within the time that there was."""


class HubCounts:
    """Counters, safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[Outcome] = Counter()
        self._answers: Counter[Answer] = Counter()

    def call(self, outcome: Outcome) -> None:
        """The network was asked."""
        with self._lock:
            self._calls[outcome] += 1

    def answer(self, by: Answer) -> None:
        """It was not."""
        with self._lock:
            self._answers[by] += 1

    @property
    def calls(self) -> dict[Outcome, int]:
        """Questions over the network by outcome; what did not occur is left out."""
        with self._lock:
            return dict(self._calls)

    @property
    def answers(self) -> dict[Answer, int]:
        """Questions that were answered otherwise."""
        with self._lock:
            return dict(self._answers)
