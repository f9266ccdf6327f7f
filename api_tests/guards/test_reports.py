"""The guards against public reports and launches known to work, which are part of the optional test material."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api_tests.material import ROOT, material
from engine.launch import ModelRef
from engine.launch_forms import launch_from_arguments
from engine.preflight import check_facts
from engine.sglang.releases import known_releases

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check_reports.py"))
answers: Callable[[Path, Path], Iterator[Any]] = SCRIPT["answers"]
suggestion_runs: Callable[[Any], bool] = SCRIPT["suggestion_runs"]


@pytest.fixture(scope="module")
def reports() -> list[Any]:
    return list(answers(material("bugs", "cases.jsonl"), material("models")))


@pytest.fixture(scope="module")
def sound() -> list[Any]:
    return list(answers(material("bugs", "sound.jsonl"), material("models")))


def test_reports_are_answered_as_they_ended(reports: list[Any]) -> None:
    answered = [answer for answer in reports if answer.checked is not None]
    wrong = [(answer.case["id"], answer.problem) for answer in answered if answer.problem]
    assert len(answered) > 100
    assert len(wrong) <= len(answered) // 20, wrong


def test_a_fault_is_named_by_the_finding(reports: list[Any]) -> None:
    silent = []
    for answer in reports:
        expect = answer.case["expect"]
        if answer.checked is None or answer.problem or expect["verdict"] == "accepted":
            continue
        if not any(expect["rule"] in finding.covers for finding in answer.checked.verdict.findings):
            silent.append(answer.case["id"])
    assert len(silent) <= len(reports) // 20, silent


def test_every_rejected_report_carries_a_launch_that_runs(reports: list[Any]) -> None:
    rejected = [a for a in reports if a.checked is not None and a.checked.verdict.verdict == "rejected"]
    assert rejected
    without = [answer.case["id"] for answer in rejected if not suggestion_runs(answer)]
    assert len(without) <= len(rejected) // 20, without


def test_launches_known_to_work_have_no_error_and_few_warnings(sound: list[Any]) -> None:
    answered = [answer for answer in sound if answer.checked is not None]
    assert answered
    severities = [{finding.severity for finding in answer.checked.verdict.findings} for answer in answered]
    errors = [a.case["id"] for a, found in zip(answered, severities, strict=True) if "error" in found]
    assert not errors
    warned = [a.case["id"] for a, found in zip(answered, severities, strict=True) if "warning" in found]
    assert len(warned) <= len(answered) / 10, warned


def test_no_guard_fails_on_any_release(reports: list[Any]) -> None:
    """Arguments come and go with releases; a guard must not trip over one that a release does not have."""
    cases = {answer.case["expect"].get("rule"): answer for answer in reports if answer.checked is not None}
    for answer in cases.values():
        for release in known_releases():
            case = answer.case
            launch = launch_from_arguments(ModelRef(path=case["model"]), case["argv"], release=release, gpu=case["gpu"])
            verdict = check_facts(launch, answer.checked.facts).verdict
            assert json.loads(json.dumps(verdict.to_dict()))["engine"]["version"] == release
