"""What was judged is remembered, and for nothing but the same question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.launch import Launch, ModelRef
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.preflight import Checked, check_facts
from service.judgements import Judged, Judgements

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
LAUNCH = Launch(model=ModelRef(id=MODEL), arguments=("--tp-size", "2"), environment={"A": "1"})


class Judge:
    """Counts how often it was asked."""

    def __init__(self, launch: Launch, facts: ModelFacts) -> None:
        self._launch, self._facts = launch, facts
        self.asked = 0

    def __call__(self) -> Checked:
        self.asked += 1
        return check_facts(self._launch, self._facts)


def facts() -> ModelFacts:
    """The model's facts, one object."""
    found = catalogue.find(MODEL)
    assert found is not None
    return found


def asked(judgements: Judgements, launch: Launch, model: ModelFacts) -> tuple[int, Judged]:
    """How often the judge was needed, and the judgement."""
    judge = Judge(launch, model)
    judged = judgements.of(launch, model, judge)
    return judge.asked, judged


def test_the_same_launch_is_judged_once() -> None:
    judgements = Judgements()
    first, judged = asked(judgements, LAUNCH, facts())
    again, remembered = asked(judgements, replace(LAUNCH, arguments=("--tp-size", "2")), facts())
    assert (first, again) == (1, 0)
    assert remembered is judged


@pytest.mark.parametrize(
    "other",
    [
        replace(LAUNCH, arguments=("--tp-size", "4")),
        replace(LAUNCH, arguments=("--tp-size=2",)),
        replace(LAUNCH, environment={"A": "2"}),
        replace(LAUNCH, environment={}),
        replace(LAUNCH, defaults={"prefill": {"backend": "full"}}),
        replace(LAUNCH, gpu="B200"),
        replace(LAUNCH, gpu_count=4),
        replace(LAUNCH, release="0.5.20"),
        replace(LAUNCH, model=ModelRef(id=MODEL, revision="main")),
    ],
)
def test_another_question_is_judged_by_itself(other: Launch) -> None:
    judgements = Judgements()
    asked(judgements, LAUNCH, facts())
    assert asked(judgements, other, facts())[0] == 1


def test_new_facts_of_the_same_model_are_judged_anew() -> None:
    judgements = Judgements()
    asked(judgements, LAUNCH, facts())
    changed = replace(facts(), notes=("other",))
    needed, judged = asked(judgements, LAUNCH, changed)
    assert needed == 1
    assert judged.checked.facts is changed


def test_only_so_many_are_remembered() -> None:
    judgements = Judgements(most=2)
    for count in (1, 2, 4):
        asked(judgements, replace(LAUNCH, gpu_count=count), facts())
    assert [asked(judgements, replace(LAUNCH, gpu_count=count), facts())[0] for count in (4, 2, 1)] == [0, 0, 1]
