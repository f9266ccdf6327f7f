"""What a machine format lists: findings, and what the engine itself refuses or changes, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.cli.answers import Answer

Level = Literal["error", "warning", "note"]

ENGINE_RULES = {
    "engine-refuses": "The engine refuses the launch.",
    "engine-adjusts": "The engine switches off or changes a graph that was asked for or is its default.",
    "unusable-launch": "The launch cannot be looked at.",
}
"""Results that come from no guard, with what they mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One thing to show; ``rule`` is a guard's id or a key of :data:`ENGINE_RULES`."""

    rule: str
    level: Level
    title: str
    text: str


def results_of(answer: Answer) -> list[Result]:
    """Everything to show of one launch, what to fix first at the front."""
    verdict = answer.verdict
    if verdict is None:
        text = f"{answer.title}: {answer.error}"
        return [Result(rule="unusable-launch", level="error", title="graphgate cannot look at this", text=text)]
    out: list[Result] = []
    if verdict.prediction.error is not None:
        text = f"{answer.title}: {verdict.summary}"
        out.append(Result(rule="engine-refuses", level="error", title="the engine refuses this launch", text=text))
    for finding in verdict.findings:
        title = f"{finding.rule} {finding.slug}"
        text = f"{answer.title}: {finding.message} {finding.remedy}"
        out.append(Result(rule=finding.rule, level=finding.severity, title=title, text=text))
    if verdict.verdict == "adjusted" and all(result.level == "note" for result in out):
        text = f"{answer.title}: {verdict.summary}"
        out.append(Result(rule="engine-adjusts", level="warning", title="the engine changes this launch", text=text))
    return out
