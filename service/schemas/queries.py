"""What may stand behind the question mark; an unknown name is refused, since it would do nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Query(BaseModel):
    """Names that are not fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoQuery(Query):
    """Nothing may."""


class ValidateQuery(Query):
    """Of ``POST /v1/validations``."""

    strict: bool = Field(False, description="Answer a rejected launch with 422.", examples=[True])


class ModelQuery(Query):
    """Of ``GET /v1/models``."""

    revision: str | None = Field(None, description="Branch, tag or commit.", examples=["main"])


class ValidationsQuery(Query):
    """Of ``GET /v1/validations``."""

    limit: int = Field(50, ge=1, le=200, examples=[50])
    cursor: str | None = Field(None, description="`next_cursor` of the page before.", max_length=64)
    verdict: Literal["accepted", "adjusted", "rejected"] | None = Field(None, examples=["rejected"])


class CapturesQuery(Query):
    """Of ``GET /v1/captures``."""

    limit: int = Field(50, ge=1, le=200, examples=[50])
    cursor: str | None = Field(None, description="`next_cursor` of the page before.", max_length=64)
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "dead"] | None = Field(
        None, examples=["running"]
    )


class EventsQuery(Query):
    """Of ``GET /v1/captures/{id}/events``."""

    after: int | None = Field(None, ge=0, description="Begin after this event; the header Last-Event-ID does the same.")
