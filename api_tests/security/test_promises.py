"""SECURITY.md names, for each of the ten risks, tests that exist."""

from __future__ import annotations

import ast
import re

import pytest

from api_tests.material import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (API\d+) [^|]+\| [^|]+\| ([^|]+) \|$", TEXT, re.M))


def test_there_is_a_row_for_each_risk() -> None:
    assert list(ROWS) == [f"API{number}" for number in range(1, 11)]


@pytest.mark.parametrize("risk", ROWS)
def test_the_tests_that_hold_it_exist(risk: str) -> None:
    named = 0
    for part in ROWS[risk].split("; "):
        file, *tests = re.findall(r"`([^`]+)`", part)
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(tests) - there == set(), file
        named += len(tests)
    assert named >= 2
