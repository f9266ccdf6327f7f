"""The model as the engine sees it, against what the engine itself makes of the same configurations.

``models-0.5.23.json`` holds the engine's answers; ``scripts/make_model_expectations.py`` makes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.models.facts import ModelFacts
from engine.sglang.engine_model import EngineModel
from engine.sglang.releases import release_named
from engine.sglang.resolution import Refusal

HERE = Path(__file__).parent
MODELS: dict[str, Any] = json.loads((HERE / "models.json").read_text(encoding="utf-8"))
RELEASE = "0.5.23"
ANSWERS: dict[str, Any] = json.loads((HERE / f"models-{RELEASE}.json").read_text(encoding="utf-8"))["answers"]


def model_of(name: str, **args: Any) -> EngineModel:
    facts = ModelFacts(model_id="MODEL", source="inline", config=MODELS[name])
    return EngineModel.of(facts, release_named(RELEASE), {"dtype": "auto", **args}, sm=90)


def test_every_configuration_has_an_answer() -> None:
    assert set(MODELS) == set(ANSWERS)
    assert len(MODELS) > 50


@pytest.mark.parametrize("name", [n for n, a in ANSWERS.items() if "error" not in a])
def test_the_model_is_what_the_engine_makes_of_it(name: str) -> None:
    expected = dict(ANSWERS[name])
    model = model_of(name)
    state = expected.pop("state")
    found = {key: getattr(model, key) for key in expected}
    found["architectures"] = list(model.architectures)
    assert found == expected
    assert (None if model.state_carrying is None else model.state_carrying.config_class) == state


@pytest.mark.parametrize("name", [n for n, a in ANSWERS.items() if "error" in a])
def test_what_the_engine_cannot_read_is_refused_in_its_words(name: str) -> None:
    expected = ANSWERS[name]["error"]
    with pytest.raises(Refusal) as refusal:
        _ = model_of(name).is_multimodal
    assert (refusal.value.type, refusal.value.message) == (expected["type"], expected["message"])
