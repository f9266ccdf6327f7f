"""Many launches in one request: each is answered in its place, and all answers are kept in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from engine.errors import QuestionError
from service import jsontext
from service.examining import examined
from service.handlers import invalid
from service.problems import Problem, details, from_question
from service.schemas.requests import ValidationRequest
from service.security.trail import Asker
from service.store.database import new_id
from service.store.validations import ValidationRow
from service.wiring import Services
from service.wording import field_error

ADDRESS = "/v1/validations/batch"
ROOT = "validations"
"""The field of the request that holds the launches."""

_CHUNK = 25
"""Launches that one visit to the workroom examines: between two visits others have their turn."""

_COUNTED = ("accepted", "adjusted", "rejected", "failed")


@dataclass(slots=True)
class _Batch:
    """What has been answered: ``items`` is JSON, in the order of the launches."""

    items: list[bytes] = field(default_factory=list)
    rows: list[ValidationRow] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))


async def answer_batch(wired: Services, launches: Sequence[Any], by: Asker) -> bytes:
    """The answer to a batch, as JSON. A launch that cannot be answered is a problem in its place; the others are not
    touched by it.

    Raises:
        Problem: the service is overloaded; nothing was kept then.
    """
    batch = _Batch()
    for first in range(0, len(launches), _CHUNK):
        await wired.examining.run(_examine, wired, launches[first : first + _CHUNK], first, by, batch)
    if batch.rows:
        await wired.examining.run(wired.validations.add_all, batch.rows)
    counts = jsontext.dumps(batch.counts)
    return b'{"items":[' + b",".join(batch.items) + b'],"counts":' + counts + b"}"


def _examine(wired: Services, launches: Sequence[Any], first: int, by: Asker, batch: _Batch) -> None:
    for index, launch in enumerate(launches, first):
        identity = by.reserved.numbered("val", index) if by.reserved else new_id("val")
        try:
            request = ValidationRequest.model_validate(launch).model_dump(exclude_unset=True)
            answered, row = examined(wired, request, by, identity)
        except (ValidationError, QuestionError) as error:
            batch.counts["failed"] += 1
            problem = _problem(error, index)
            text = jsontext.dumps(details(problem, instance=ADDRESS, request_id=by.request_id))
            batch.items.append(b'{"index":%d,"validation":null,"problem":%s}' % (index, text))
            continue
        batch.counts[row.verdict] += 1
        batch.rows.append(row)
        batch.items.append(b'{"index":%d,"validation":%s,"problem":null}' % (index, answered.body))


def _problem(error: ValidationError | QuestionError, index: int) -> Problem:
    """The problem of one launch; its fields are told from the root of the request, where it stands at ``index``."""
    if isinstance(error, ValidationError):
        found = [field_error({**one, "loc": ("body", *one["loc"])}) for one in error.errors(include_url=False)]
        problem = invalid(found)
    else:
        problem = from_question(error)
    problem.errors = tuple(replace(one, path=(ROOT, index, *one.path)) for one in problem.errors)
    return problem
