"""A request's body becomes a kept answer: the one way from HTTP into the domain."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.comparison import compare
from engine.errors import ConfigUnreadable
from engine.launch import Launch
from engine.launch_forms import launch_from_request
from engine.preflight import Checked, check_facts
from service import jsontext
from service.judgements import Judged
from service.problem_types import LAUNCH_REJECTED
from service.problems import Problem
from service.security.redaction import secrets_of, without
from service.security.trail import SERVICE, Asker
from service.store.database import time_of
from service.store.validations import ValidationRow
from service.wiring import Services


@dataclass(frozen=True, slots=True)
class Answered:
    """An examined launch, kept under ``id``; ``body`` is the answer's JSON."""

    id: str
    checked: Checked
    body: bytes

    @property
    def rejected(self) -> bool:
        """Whether the verdict is that."""
        return self.checked.verdict.verdict == "rejected"

    def problem(self, status: int, advice: str) -> Problem:
        """The problem that a rejected launch is where only an acceptable one will do."""
        answer = json.loads(self.body)
        detail = f"{answer['summary']} {advice}".strip()
        return Problem(LAUNCH_REJECTED, detail, status=status, extra={"validation": answer})


def examine(wired: Services, request: Mapping[str, Any], by: Asker = SERVICE) -> Answered:
    """Check the launch that the request describes, and keep the answer.

    Raises:
        QuestionError: the launch cannot be understood, or its model cannot be resolved.
    """
    answered, row = examined(wired, request, by, by.new_id("val"))
    wired.validations.add(row)
    return answered


def examined(
    wired: Services, request: Mapping[str, Any], by: Asker, identity: str, launch: Launch | None = None
) -> tuple[Answered, ValidationRow]:
    """The answer with that id, and the row that it is to be kept as. ``launch``: what the request describes, where that
    is known already.

    Raises:
        QuestionError: the launch cannot be understood, or its model cannot be resolved.
    """
    launch = launch or launch_from_request(request)
    begun = time.perf_counter()
    try:
        with wired.tracing.span("examine", **{"graphgate.model": launch.model.label}):
            judged = _judged(wired, launch)
    except ConfigUnreadable as error:
        raise _in_the_request(error, launch) from None
    verdict = judged.checked.verdict
    wired.metrics.verdict(verdict, wired.gate, time.perf_counter() - begun)
    made_at = time_of(identity)
    told, summary, text = request, verdict.summary, judged.text
    secrets = secrets_of(launch)
    if secrets:
        told, summary = without(request, secrets), without(summary, secrets)
        text = jsontext.dumps(without(verdict.to_dict(), secrets))
    head = f'{{"id":"{identity}","created_at":"{made_at}","request":'.encode()
    body = b"%s%s,%s" % (head, jsontext.dumps(told), text[1:])
    row = ValidationRow(
        id=identity,
        created_at=made_at,
        verdict=verdict.verdict,
        summary=summary,
        model=launch.model.label,
        release=str(verdict.engine["version"]),
        gpu=str(verdict.hardware["name"]),
        rules=tuple(dict.fromkeys(finding.rule for finding in verdict.findings)),
        body=body.decode(),
        created_by=by.identity.owner,
    )
    return Answered(identity, judged.checked, body), row


def _judged(wired: Services, launch: Launch) -> Judged:
    facts = wired.resolver.resolve(launch.model)
    return wired.judgements.of(launch, facts, lambda: check_facts(launch, facts, wired.gate))


def compare_releases(wired: Services, request: Mapping[str, Any]) -> bytes:
    """The comparison that the request describes, as JSON. It is not kept.

    Raises:
        QuestionError: the launch, a release or the model cannot be understood.
    """
    launch = launch_from_request({key: value for key, value in request.items() if key != "releases"})
    try:
        rows = compare(launch, request["releases"], wired.resolver, wired.gate)
    except ConfigUnreadable as error:
        raise _in_the_request(error, launch) from None
    answer: dict[str, Any] = {"request": request, "releases": [row.to_dict() for row in rows]}
    secrets = secrets_of(launch)
    return jsontext.dumps(without(answer, secrets) if secrets else answer)


def _in_the_request(error: ConfigUnreadable, launch: Launch) -> ConfigUnreadable:
    """The error, its place told from the request's root; a config that lies elsewhere is named by its model."""
    place = error.field or ""
    if place == "model" or place.startswith("model."):
        return error
    inline = launch.model.config is not None
    field = f"model.config.{place}".rstrip(".") if inline else "model"
    detail = f"{place}: {error.detail}" if place else error.detail
    return ConfigUnreadable(detail, remedy=error.remedy, field=field)
