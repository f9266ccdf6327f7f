"""Options that a release no longer has: since when, and what to write instead.

The engine itself only says "unrecognized arguments" or "ambiguous option". The table is ``releases/retired.json``,
made by ``scripts/list_retired.py`` from the releases' own deprecation warnings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.sglang.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """One removed option. ``last`` is the last release that had it; ``instead`` what to write, or None."""

    option: str
    last: str
    instead: str | None

    def __str__(self) -> str:
        advice = f"; write {self.instead} instead" if self.instead else " and has no replacement"
        return f"{self.option} went away after {self.last}{advice}."


@cache
def _table() -> dict[str, dict[str, str | None]]:
    path = Path(__file__).parent / "releases" / "retired.json"
    rows: dict[str, dict[str, str | None]] = json.loads(path.read_text(encoding="utf-8"))["options"]
    return rows


def retired_in(words: Sequence[str], release: Release) -> tuple[Retired, ...]:
    """The options among the words that this release no longer has, in order."""
    out = []
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option in _table() and option not in release.options.by_string:
            out.append(Retired(option=option, last=_table()[option]["last"] or "", instead=_instead(option, release)))
    return tuple(out)


def _instead(option: str, release: Release) -> str | None:
    """The replacement that this release knows: what replaced an option may have gone in its turn."""
    seen: set[str] = set()
    named = _table()[option]["instead"]
    while named is not None and named not in seen:
        seen.add(named)
        if not named.startswith("--") or " " in named:  # a sentence of the engine's
            return named
        flag, _, value = named.partition("=")
        if flag in release.options.by_string:
            choices = release.options.by_string[flag].choices
            return named if not value or choices is None or value in choices else None
        named = _table().get(flag, {}).get("instead")
    return None
