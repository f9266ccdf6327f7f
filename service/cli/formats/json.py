"""JSON. One launch is an object of the shape of a validation; launches out of manifests stand in a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.version import VERSION
from service.cli.answers import Answer
from service.cli.problems import problem

FORMAT_VERSION = 1
"""Raised where a field goes away or changes its meaning; new fields do not raise it."""


def render(answers: Sequence[Answer], *, verbose: bool) -> str:  # noqa: ARG001 - everything is always in it
    """The document, indented."""
    head = {"version": FORMAT_VERSION, "graphgate": VERSION}
    if len(answers) == 1 and answers[0].file is None:
        return json.dumps({**head, **_object(answers[0])}, indent=2)
    return json.dumps({**head, "launches": [_object(answer) for answer in answers]}, indent=2)


def _object(answer: Answer) -> dict[str, Any]:
    where = {"file": answer.file, "owner": answer.owner, "place": answer.place} if answer.file is not None else {}
    if answer.verdict is not None:
        return {**where, **answer.verdict.to_dict()}
    return {**where, "error": problem(answer.error) if answer.error else None}
