"""Every guard has its page, its examples, its evidence; a good example is silent, a bad one hits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.guards import all_rules
from engine.guards.base import Rule
from engine.launch_forms import launch_from_arguments, launch_from_request
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import Checked, check, check_facts
from engine.verdict import Finding
from service.cli.rule_pages import page, page_name

EXAMPLES = Path(__file__).parent / "examples"
PAGES = Path(__file__).parent.parent.parent / "docs" / "rules"
HEADINGS = ("## What it does", "## Why it is bad", "## What to do", "## Exceptions")
REPORT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
SOURCE = re.compile(r"sglang \d+\.\d+\.\d+: srt/[\w/.-]+(, .+)?")
RULES = all_rules()
resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))
by_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.slug for rule in RULES])


def example(rule: Rule, kind: str) -> Checked:
    body: dict[str, Any] = json.loads((EXAMPLES / f"{rule.slug}.{kind}.json").read_text(encoding="utf-8"))
    return check(launch_from_request(body), resolver)


def hits(rule: Rule, checked: Checked) -> list[Finding]:
    return [finding for finding in checked.verdict.findings if finding.rule == rule.id]


@by_rule
def test_the_page_is_made_from_the_docstring(rule: Rule) -> None:
    for heading in HEADINGS:
        assert heading in rule.documentation, f"the docstring of {rule.slug} lacks {heading!r}"
    kept = (PAGES / page_name(rule)).read_text(encoding="utf-8")
    assert kept.endswith(page(rule)), "run scripts/make_rule_pages.py"


@by_rule
def test_evidence_says_where_to_read(rule: Rule) -> None:
    assert rule.evidence
    for evidence in rule.evidence:
        assert (SOURCE if evidence.kind == "source" else REPORT).fullmatch(evidence.reference), evidence.reference
        assert evidence.says
    assert any(evidence.kind == "source" for evidence in rule.evidence)


@by_rule
def test_the_bad_example_hits(rule: Rule) -> None:
    checked = example(rule, "bad")
    found = hits(rule, checked)
    assert found
    for finding in found:
        assert finding.message
        assert finding.remedy
        assert set(finding.covers) <= set(rule.covers)
        assert finding.evidence == rule.evidence
    if any(finding.severity == "error" for finding in found):
        assert checked.verdict.verdict == "rejected"


@by_rule
def test_the_good_example_is_silent(rule: Rule) -> None:
    checked = example(rule, "good")
    assert not hits(rule, checked)
    assert checked.verdict.verdict != "rejected"


@by_rule
def test_a_suggested_launch_runs(rule: Rule) -> None:
    checked = example(rule, "bad")
    for finding in hits(rule, checked):
        if finding.suggestion is None:
            continue
        launch = launch_from_arguments(
            checked.launch.model,
            finding.suggestion,
            release=checked.launch.release,
            gpu=checked.launch.gpu,
            environment=checked.launch.environment,
        )
        again = check_facts(launch, checked.facts)
        assert again.verdict.verdict != "rejected"
        assert not [hit for hit in hits(rule, again) if hit.severity != "note"]


@by_rule
def test_the_rule_ends_with_its_releases(rule: Rule) -> None:
    first, last = rule.releases
    assert first <= last
    assert rule.holds_for(first)
    assert rule.holds_for(last)
    assert not rule.holds_for((last[0], last[1], last[2] + 1))


def test_names_are_their_own() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert len({rule.slug for rule in RULES}) == len(RULES)
    kept = {path.name for path in EXAMPLES.glob("*.json")}
    assert kept == {f"{rule.slug}.{kind}.json" for rule in RULES for kind in ("good", "bad")}
