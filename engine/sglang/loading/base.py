"""What one load-time decision is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.sglang.resolution import Resolution, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """One reason for which the engine gives up a resolved prefill graph while the model loads.

    ``run`` says the reason, or None where this step lets the graph be. ``source`` is the engine file and function it
    follows; ``since`` and ``until`` bound the releases that take it (both inclusive; None: from the first, to the
    newest known).
    """

    name: str
    run: Callable[[Resolution], str | None]
    source: str
    since: Version | None = None
    until: Version | None = None

    def applies(self, version: Version) -> bool:
        """Whether the release of that version takes this step."""
        return (self.since is None or version >= self.since) and (self.until is None or version <= self.until)
