"""Rules that the engine lacks: one rule, one file, each with evidence.

A guard is a module of this package that holds a ``RULE``; adding the file adds the rule. Its docstring, with fixed
headings, is the rule's page.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from functools import cache

from engine.guards.base import Examined, Hit, Rule
from engine.guards.mending import with_proven_suggestions

_NOT_RULES = frozenset({"base", "mending", "rewriting", "words"})
_ORDER = {"error": 0, "warning": 1, "note": 2}


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every guard, by id. ``documentation`` is the docstring of its module."""
    rules: list[Rule] = []
    for info in pkgutil.iter_modules(__path__):
        if info.name in _NOT_RULES:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        rules.append(dataclasses.replace(module.RULE, documentation=inspect.getdoc(module) or ""))
    return tuple(sorted(rules, key=lambda rule: rule.id))


@cache
def _rules_for(version: tuple[int, int, int], refused: bool) -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.refusals is refused and rule.holds_for(version))


def findings_for(examined: Examined) -> tuple[Hit, ...]:
    """Every hit of every guard that holds for the release, what to fix first at the front.

    A launch that the engine itself refuses is looked at only by the guards that explain refusals. A rewritten launch
    is suggested only where the engine and every guard let it pass.
    """
    return with_proven_suggestions(examined, _hits(examined), _hits)


def _hits(examined: Examined) -> tuple[Hit, ...]:
    predicted = examined.predicted
    refused = predicted.prediction.outcome == "refused"
    hits = [hit for rule in _rules_for(predicted.release.version, refused) for hit in rule.check(examined)]
    if len(hits) > 1:
        hits.sort(key=lambda hit: (_ORDER[hit.finding.severity], hit.finding.rule))
    return tuple(hits)
