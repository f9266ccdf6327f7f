"""The ids that a request with an idempotency key gives to what it makes: the same ones, however often it is tried."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reserved:
    """``suffix`` ends the ids, after the prefix that says of what; ``again``: they may have been given already."""

    suffix: str
    again: bool

    def id(self, prefix: str) -> str:
        """The id of the one thing of this kind that the request makes."""
        return f"{prefix}_{self.suffix}"

    def numbered(self, prefix: str, index: int) -> str:
        """The id of one of several things."""
        own = hashlib.sha256(f"{self.suffix}:{index}".encode()).hexdigest()
        return f"{prefix}_{self.suffix[:12]}{own[:16]}"
