"""Why a credential is not taken."""

from __future__ import annotations

from typing import Literal

Reason = Literal["missing", "malformed", "unknown", "revoked", "expired", "token"]


class Refused(Exception):
    """The caller's credential is not taken. ``actor`` is whose it is, where that is certain."""

    def __init__(self, reason: Reason, detail: str, *, actor: str | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.actor = actor
