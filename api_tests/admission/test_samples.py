"""Manifests, good and bad, each with what must be said of it. See the files in ``samples``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from api_tests.admission.reviews import ask, published, review

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))
CUSTOM = {"LeaderWorkerSet", "InferenceGroup"}
"""Kinds that Kubernetes itself does not have, and so publishes no schema of."""

by_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])


def read(sample: Path) -> tuple[dict[str, Any], list[Any]]:
    expected, *objects = yaml.safe_load_all(sample.read_text(encoding="utf-8"))
    return expected, objects


def said(text: str, expected: str) -> bool:
    """Whether the text is the expected one; what ends in an ellipsis is its beginning."""
    return text.startswith(expected[:-1]) if expected.endswith("…") else text == expected


def test_there_are_enough_of_them() -> None:
    denied = [sample for sample in SAMPLES if not read(sample)[0]["allowed"]]
    assert len(SAMPLES) >= 30
    assert 10 <= len(denied) <= len(SAMPLES) - 10


@by_sample
def test_a_sample_is_an_object_that_a_cluster_takes(sample: Path) -> None:
    for document in filter(None, read(sample)[1]):
        assert published(document) is (document["kind"] not in CUSTOM)


@by_sample
def test_the_answer_is_the_expected_one(sample: Path, api: httpx.Client) -> None:
    expected, objects = read(sample)
    more = {"subResource": expected["subResource"]} if "subResource" in expected else {}
    response = ask(api, review(*objects, operation=expected.get("operation", "CREATE"), **more))
    lines = response.get("status", {}).get("message", "").splitlines()
    wanted = expected.get("message", [])
    assert response["allowed"] is expected["allowed"], lines
    assert len(lines) == len(wanted), lines
    for line, text in zip(lines, wanted, strict=True):
        assert said(line, text), line
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [[cause["reason"], cause["field"]] for cause in causes] == expected.get("causes", [])
    warnings = response.get("warnings", [])
    assert len(warnings) == len(expected.get("warnings", [])), warnings
    for warning, text in zip(warnings, expected.get("warnings", []), strict=True):
        assert said(warning, text), warning
    if not expected["allowed"]:
        status = response["status"]
        assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")


@by_sample
def test_a_dry_run_is_answered_alike(sample: Path, api: httpx.Client) -> None:
    expected, objects = read(sample)
    more = {"subResource": expected["subResource"]} if "subResource" in expected else {}
    operation = expected.get("operation", "CREATE")
    sent = review(*objects, operation=operation, **more)
    dry = {**sent, "request": {**sent["request"], "dryRun": True}}
    assert ask(api, dry) == ask(api, sent)
