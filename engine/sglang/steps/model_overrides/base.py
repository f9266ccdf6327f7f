"""The form of a family's override."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.sglang.resolution import Resolution, Version

Values = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One family: its architectures, and what it wants of a launch.

    ``containing`` names parts of an architecture's name where the engine matches by substring. ``since`` and
    ``until`` bound the releases (both inclusive).
    """

    family: str
    look: Callable[[Resolution], Values]
    architectures: tuple[str, ...] = ()
    containing: tuple[str, ...] = ()
    since: Version | None = None
    until: Version | None = None

    def applies(self, architecture: str, version: Version, *, known: bool = True) -> bool:
        """Whether the family's function looks at this architecture in this release, which has it or not (``known``)."""
        if (self.since is not None and version < self.since) or (self.until is not None and version > self.until):
            return False
        return (known and architecture in self.architectures) or any(part in architecture for part in self.containing)
