"""Every launch of ``launches*.txt`` is predicted as the real engine resolved it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from api_tests.conformance.launches import FOLDER, Case, cases, config
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.predict import Predicted, predict

_KEPT = 600  # characters
RELEASES = sorted(path.stem.removeprefix("expectations-") for path in FOLDER.glob("expectations-*.json"))

# What only the way of asking explains is no expectation: the engine was asked with --skip-tokenizer-init, under which
# alone it builds sampling parameters while it resolves; and until 0.5.18 this choice follows a variable that is read
# while the engine is imported, which was before the variable was set to ask.
_WITHOUT_TOKENIZER = ("Unexpected keyword argument", "SamplingParams.__init__() got an unexpected keyword argument")
_CLASS_OF_A_TOWER = "StrictDataclassFieldValidationError"
_READ_AT_IMPORT = "argument --sampling-backend: invalid choice: 'token_oracle'"


@cache
def expectations(release: str) -> dict[str, dict[str, Any]]:
    path = Path(FOLDER / f"expectations-{release}.json")
    value: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return value


def predicted(case: Case, release: str) -> Predicted:
    launch = Launch(
        model=ModelRef(path=case.model),
        release=release,
        gpu=case.gpu,
        arguments=case.arguments,
        environment=case.environment,
    )
    facts = ModelFacts(model_id=None, source="inline", config=config(case.model))
    return predict(launch, facts, gpu_named(case.gpu))


def comparable(case: Case, release: str) -> bool:
    """Whether the launch alone explains the engine's answer, and not the way in which the engine was asked."""
    answer = expectations(release).get(case.line, {})
    said = (answer.get("error") or {}).get("message", "")
    return not (said.startswith(_WITHOUT_TOKENIZER) or (_READ_AT_IMPORT in said and case.environment))


COMPARED = [
    pytest.param(case, release, id=f"{release} {case.line}")
    for case in cases()
    for release in RELEASES
    if comparable(case, release)
]


def test_hardly_a_launch_is_left_out() -> None:
    assert len(COMPARED) > 0.995 * len(cases()) * len(RELEASES)


@pytest.mark.parametrize(("case", "release"), COMPARED)
def test_as_the_engine_resolved_it(case: Case, release: str) -> None:
    engine = expectations(release)[case.line]
    answer = predicted(case, release).prediction.to_dict()
    assert answer["outcome"] == engine["outcome"], answer.get("error") or engine.get("error")
    if (engine.get("error") or {}).get("type") == _CLASS_OF_A_TOWER:
        return  # until 0.5.16 transformers refuses a tower that is written over, in words that print its classes
    if engine["outcome"] == "refused":
        assert answer["error"]["stage"] == engine["error"]["stage"]
        assert answer["error"]["type"] == engine["error"]["type"]
        assert _words(answer["error"]["message"]) == _words(engine["error"]["message"])
        return
    for phase, settings in answer["graph"].items():
        known = engine["graph"][phase]  # older releases have fewer settings
        assert {key: settings[key] for key in known} == known
        assert {key for key, value in settings.items() if value is not None} <= known.keys()
    assert answer["locked"] == engine["locked"]
    fraction, expected = answer["args"].pop("mem_fraction_static"), dict(engine["args"])
    assert fraction == pytest.approx(expected.pop("mem_fraction_static"), abs=1e-9)
    assert answer["args"] == expected


def _words(message: str) -> str:
    """As much as the answers keep, without what differs from run to run: the order of a set of choices."""
    return message.split("(choose from")[0][:_KEPT]


def test_every_launch_has_an_answer_and_no_answer_is_stale() -> None:
    for release in RELEASES:
        assert list(expectations(release)) == [case.line for case in cases()]
