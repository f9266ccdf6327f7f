"""What may stand behind the question mark; an unknown name is refused, since it would do nothing."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from service.store.filters import Filter


def _written_out(value: object) -> object:
    """A number would be taken for seconds since 1970, which the document does not offer."""
    if isinstance(value, str) and not re.match(r"[0-9]{4}-", value):
        raise ValueError("write a time as RFC 3339 does, such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written_out)]
"""A moment, as RFC 3339 writes it."""


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


_Text = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\u0000-\u001f\u007f]+$")]


class ListQuery(Query):
    """Of both lists. An entry is in the list if it has everything that is given."""

    limit: int = Field(50, ge=1, le=200, examples=[50])
    cursor: str | None = Field(None, description="`next_cursor` of the page before.", max_length=64)
    verdict: Literal["accepted", "adjusted", "rejected"] | None = Field(None, examples=["rejected"])
    model: _Text | None = Field(None, description="The model's id, exactly.", examples=["Qwen/Qwen3-8B"])
    release: _Text | None = Field(None, description="The engine's release.", examples=["0.5.23"])
    gpu: _Text | None = Field(None, description="The GPU's name.", examples=["H200"])
    rule: Annotated[str, Field(pattern="^[A-Z]{2}[0-9]{1,6}$")] | None = Field(
        None, description="A rule with findings in the validation, by its id.", examples=["GG101"]
    )
    since: Moment | None = Field(None, description="Made at that time or later.")
    until: Moment | None = Field(None, description="Made before that time.")

    def filter(self, owner: str | None) -> Filter:
        """What the store is asked for; of that owner alone, where one is given."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in ("limit", "cursor")}
        return Filter(**given, owner=owner)


class ValidationsQuery(ListQuery):
    """Of ``GET /v1/validations``."""


class CapturesQuery(ListQuery):
    """Of ``GET /v1/captures``."""

    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "dead"] | None = Field(
        None, examples=["running"]
    )


class EventsQuery(Query):
    """Of ``GET /v1/captures/{id}/events``."""

    after: int | None = Field(None, ge=0, description="Begin after this event; the header Last-Event-ID does the same.")
