"""What differs between releases inside a step, as rows: from which release on a value, or a refusal, holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from engine.sglang.resolution import Version

T = TypeVar("T")

FIRST: Version = (0, 0, 0)
"""Before every release: the ``since`` of what has always held."""


def at(rows: Sequence[tuple[Version, T]], version: Version) -> T:
    """The value of that release: of the newest row, newest first, that is not younger than it.

    Raises:
        LookupError: the rows begin after that release (a mistake in a step).
    """
    for since, value in rows:
        if since <= version:
            return value
    raise LookupError(f"no row for release {'.'.join(map(str, version))}")
