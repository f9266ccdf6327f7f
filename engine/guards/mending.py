"""Suggested launches that hold: each is put to the engine's prediction and to every guard before it is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from engine.errors import QuestionError
from engine.guards.base import Examined, Hit
from engine.sglang.predict import predict

_STEPS = 8
"""A launch with more faults than this is not mended word by word."""


def with_proven_suggestions(
    examined: Examined, hits: tuple[Hit, ...], find: Callable[[Examined], tuple[Hit, ...]]
) -> tuple[Hit, ...]:
    """The hits, each with a suggestion that passes, or with none.

    Where a suggestion mends one fault and another remains, the other's suggestion is followed too, so that what is
    shown is a launch that runs.
    """
    if not any(hit.finding.suggestion is not None for hit in hits):
        return hits
    proven: dict[tuple[str, ...], tuple[str, ...] | None] = {}
    return tuple(_proven(examined, hit, find, proven) for hit in hits)


def _proven(
    examined: Examined,
    hit: Hit,
    find: Callable[[Examined], tuple[Hit, ...]],
    proven: dict[tuple[str, ...], tuple[str, ...] | None],
) -> Hit:
    first = hit.finding.suggestion
    if first is None:
        return hit
    if first not in proven:
        proven[first] = _mended(examined, first, find)
    return hit if proven[first] == first else _with(hit, proven[first])


def _mended(
    examined: Examined, arguments: tuple[str, ...], find: Callable[[Examined], tuple[Hit, ...]]
) -> tuple[str, ...] | None:
    seen = {examined.launch.arguments}
    for _ in range(_STEPS):
        if arguments in seen:
            return None
        seen.add(arguments)
        launch = dataclasses.replace(examined.launch, arguments=arguments)
        try:
            predicted = predict(launch, examined.facts, examined.gpu)
        except QuestionError:
            return None
        hits = find(dataclasses.replace(examined, launch=launch, predicted=predicted))
        errors = [hit for hit in hits if hit.finding.severity == "error"]
        if predicted.prediction.outcome == "resolved" and not errors:
            return arguments
        further = _next(errors)
        if further is None:
            return None
        arguments = further
    return None


def _next(errors: Sequence[Hit]) -> tuple[str, ...] | None:
    return next((hit.finding.suggestion for hit in errors if hit.finding.suggestion is not None), None)


def _with(hit: Hit, suggestion: tuple[str, ...] | None) -> Hit:
    return dataclasses.replace(hit, finding=dataclasses.replace(hit.finding, suggestion=suggestion))
