"""The forms of what access control tells."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.schemas.answers import Answer
from service.schemas.queries import Query


class AuditQuery(Query):
    """Of ``GET /v1/audit``."""

    limit: int = Field(50, ge=1, le=200, examples=[50])
    cursor: str | None = Field(None, description="`next_cursor` of the page before.", max_length=64)
    action: str | None = Field(None, description="Such as `capture.accepted`.", max_length=40, examples=["access"])
    actor: str | None = Field(None, description="Such as `key:PREFIX`.", max_length=160)
    outcome: Literal["done", "denied"] | None = Field(None, examples=["denied"])


class AuditOut(Answer):
    """Who did what, when, and what came of it."""

    id: str
    at: str
    actor: str
    action: str
    object: str | None
    outcome: Literal["done", "denied"]
    request_id: str | None
    address: str | None
    detail: str | None


class AuditPage(Answer):
    """Newest first; `next_cursor` is null on the last page."""

    items: list[AuditOut]
    next_cursor: str | None


class GpuSecondsOut(Answer):
    """Of one day in UTC; `limit` and `left` are null where there is no quota."""

    limit: int | None
    taken: float
    left: float | None
    day: str
    resets_in_s: int


class QuotaOut(Answer):
    """What a caller may do and use."""

    identity: str
    name: str
    scopes: list[str]
    rate: str | None
    gpu_seconds: GpuSecondsOut
