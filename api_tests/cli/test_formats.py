"""Machine formats: JSON by version, SARIF 2.1.0, workflow commands of GitHub Actions."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from api_tests.cli.command import FULL_PREFILL, LLAMA, QWEN3_NEXT, graphgate
from engine.errors import InvalidLaunch
from service.cli.answers import Answer
from service.cli.formats.github import command, render

SARIF = json.loads((Path(__file__).parent / "sarif-used.schema.json").read_text(encoding="utf-8"))
JSONSCHEMA: Any = importlib.import_module("jsonschema")
"""Imported so, for its types are a package of their own."""

REJECTED = ("check", QWEN3_NEXT, "--", *FULL_PREFILL)
REFUSED = ("check", LLAMA, "--", "--no-such-option")


def check_sarif(document: Any) -> None:
    """Raises where the document is not SARIF 2.1.0."""
    JSONSCHEMA.validate(document, SARIF, format_checker=JSONSCHEMA.FormatChecker())


def _with_format(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return (words[0], words[1], "--format", name, *words[2:])


def test_json_is_a_validation_with_a_version() -> None:
    done = graphgate(*_with_format("json", REJECTED))
    assert done.code == 1
    document = done.document
    assert document["version"] == 1
    assert document["verdict"] == "rejected"
    assert set(document) == {
        "version",
        "graphgate",
        "verdict",
        "summary",
        "model",
        "engine",
        "hardware",
        "prediction",
        "findings",
        "effective",
        "ledger",
        "notes",
        "policy",
        "plan",
    }
    assert document["effective"] is None
    assert document["hardware"]["count"] == 8


def _sarif(words: tuple[str, ...]) -> dict[str, Any]:
    done = graphgate(*_with_format("sarif", words))
    document: dict[str, Any] = done.document
    check_sarif(document)
    return document


def test_sarif_holds_the_finding_and_its_rule() -> None:
    run = _sarif(REJECTED)["runs"][0]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert result["ruleId"] == rule["id"] == "GG101"
    assert result["level"] == "error"
    assert "Replace --cuda-graph-config" in result["message"]["text"]
    assert rule["help"]["text"].startswith("Full prefill graphs on hybrid linear-attention models.")
    assert run["invocations"][0]["executionSuccessful"] is True


def test_sarif_holds_what_the_engine_refuses_and_changes() -> None:
    (refused,) = _sarif(REFUSED)["runs"][0]["results"]
    assert (refused["ruleId"], refused["level"]) == ("engine-refuses", "error")
    assert "unrecognized arguments: --no-such-option" in refused["message"]["text"]
    changed = ("check", LLAMA, "--", "--attention-backend", "torch_native", "--cuda-graph-backend-decode", "full")
    results = {result["ruleId"]: result["level"] for result in _sarif(changed)["runs"][0]["results"]}
    assert results == {"engine-adjusts": "warning", "GG901": "note"}
    assert _sarif(("check", LLAMA))["runs"][0]["results"] == []


@pytest.mark.parametrize("broken", ["version", "runs"])
def test_the_schema_would_notice(broken: str) -> None:
    document = _sarif(REJECTED)
    del document[broken]
    with pytest.raises(JSONSCHEMA.ValidationError):
        check_sarif(document)


def test_github_annotates_each_finding_on_one_line() -> None:
    done = graphgate(*_with_format("github", REJECTED))
    assert done.code == 1
    (line,) = done.out.splitlines()
    assert line.startswith("::error title=GG101 hybrid-full-prefill::")
    assert "%0A" not in line
    quiet = graphgate(*_with_format("github", ("check", LLAMA))).out.splitlines()
    assert len(quiet) == 1
    assert quiet[0].startswith("::notice title=graphgate accepted::")


def test_github_escapes_what_would_end_a_command() -> None:
    """The escapes are those of the runner's toolkit, @actions/core ``command.ts``."""
    assert command("error", "a: b, c%", "1%\r\n::error::2", "x:y,z.yaml") == (
        "::error file=x%3Ay%2Cz.yaml,title=a%3A b%2C c%25::1%25%0D%0A::error::2"
    )
    hostile = Answer(error=InvalidLaunch("one\n::add-mask::two"), file="m.yaml", owner="Pod a/b")
    assert len(render([hostile], verbose=False).splitlines()) == 1
