"""What the launcher refuses of resolved launches is what the engine's launcher refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from api_tests.conformance.launches import config
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.launching import launch_refusal
from engine.sglang.predict import predict

NEWEST = "0.5.23"
ANSWERS: dict[tuple[str, str], Any] = {
    (path.stem.removeprefix("answers-"), line): said
    for path in sorted(Path(__file__).parent.glob("answers-*.json"))
    for line, said in json.loads(path.read_text(encoding="utf-8")).items()
}
VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


def resolution(line: str, release: str = NEWEST) -> Any:
    model, *words = shlex.split(line)
    environment: dict[str, str] = {}
    while words and (found := VARIABLE.fullmatch(words[0])):
        environment[found.group(1)] = found.group(2)
        words = words[1:]
    launch = Launch(
        model=ModelRef(path=model), release=release, gpu="H200", arguments=tuple(words), environment=environment
    )
    facts = ModelFacts(model_id=None, source="inline", config=config(model))
    predicted = predict(launch, facts, gpu_named("H200"))
    assert predicted.prediction.outcome == "resolved", predicted.prediction.error
    return predicted.resolution


@pytest.mark.parametrize(("release", "line"), ANSWERS)
def test_the_launcher_refuses_what_the_engine_refused(release: str, line: str) -> None:
    refusal = launch_refusal(resolution(line, release))
    said = ANSWERS[release, line]
    if said is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.stage == "resolve"
        assert {"type": refusal.type, "message": refusal.message} == said


def test_asking_changes_nothing() -> None:
    asked = resolution("llama --lora-paths a=/adapters/a")
    before = dict(asked.args.__dict__)
    launch_refusal(asked)
    assert asked.args.__dict__ == before
