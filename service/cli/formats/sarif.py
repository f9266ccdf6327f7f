"""SARIF 2.1.0 (OASIS), for code-scanning dashboards.

A launch out of a manifest is located by its file; one from the command line by its words, as a logical location.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.guards import all_rules
from engine.version import VERSION
from service.cli.answers import Answer
from service.cli.formats.results import ENGINE_RULES, Result, results_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(answers: Sequence[Answer], *, verbose: bool) -> str:  # noqa: ARG001 - everything is always in it
    """The log of one run."""
    shown = [(answer, result) for answer in answers for result in results_of(answer)]
    rules = _rules()
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    notifications = [_notification(answer) for answer in answers if answer.error is not None]
    run = {
        "tool": {"driver": {"name": "graphgate", "version": VERSION, "rules": rules}},
        "invocations": [
            {"executionSuccessful": not notifications, "toolExecutionNotifications": notifications},
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(answer, result, index) for answer, result in shown if answer.error is None],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rules() -> list[dict[str, Any]]:
    guards = [
        {
            "id": rule.id,
            "name": "".join(part.capitalize() for part in rule.slug.split("-")),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.documentation.partition("\n")[0]},
            "help": {"text": rule.documentation, "markdown": rule.documentation},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in all_rules()
    ]
    engine = [{"id": name, "shortDescription": {"text": text}} for name, text in ENGINE_RULES.items()]
    return [*guards, *engine]


def _result(answer: Answer, result: Result, index: dict[str, int]) -> dict[str, Any]:
    return {
        "ruleId": result.rule,
        "ruleIndex": index[result.rule],
        "level": result.level,
        "message": {"text": result.text},
        "locations": [_location(answer)],
        "properties": {"verdict": answer.verdict.verdict if answer.verdict else None},
    }


def _location(answer: Answer) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if answer.file is not None:
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(answer.file)}}
    name = answer.place or " ".join((answer.title, *(answer.launch.arguments if answer.launch else ())))
    location["logicalLocations"] = [{"name": answer.title, "fullyQualifiedName": name}]
    return location


def _notification(answer: Answer) -> dict[str, Any]:
    return {"level": "error", "message": {"text": str(answer.error)}, "locations": [_location(answer)]}


def _uri(file: str) -> str:
    from urllib.parse import quote  # only where a file is named

    return quote(file)
