"""One launch on several releases: what an upgrade changes, because of which step, and the launch rewritten for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import InvalidLaunch, UnknownRelease
from engine.launch import PHASES, Launch
from engine.models.facts import ModelFacts
from engine.modes import Gate
from engine.preflight import Checked, Resolver, check_facts
from engine.sglang.releases import release_named
from engine.sglang.translation import translated
from engine.verdict import Decision

MAX_RELEASES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that differs from the release before; ``because`` is the step that decided it, on either side."""

    key: str
    before: Any
    after: Any
    because: str
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "because": self.because,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRelease:
    """The launch on one release.

    ``as_written`` is the launch with the words of the first release; ``arguments`` the words rewritten for this one,
    with a note for each change, and ``checked`` the answer to those. ``changes`` are against the release before.
    """

    release: str
    as_written: Checked
    checked: Checked
    arguments: tuple[str, ...]
    rewritten: tuple[str, ...]
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "as_written": {
                "verdict": self.as_written.verdict.verdict,
                "summary": self.as_written.verdict.summary,
            },
            "arguments": list(self.arguments),
            "rewritten": list(self.rewritten),
            "verdict": self.checked.verdict.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
        }


def compare(
    launch: Launch, releases: Sequence[str], resolver: Resolver, gate: Gate | None = None
) -> tuple[OnRelease, ...]:
    """The launch, written for the first of ``releases``, on each of them in the given order.

    Raises:
        QuestionError: a release or the model is not known, or fewer than two releases are named.
    """
    if not 2 <= len(releases) <= MAX_RELEASES:
        raise InvalidLaunch(
            f"A comparison needs 2 to {MAX_RELEASES} releases; {len(releases)} are given.",
            remedy='Write "releases": ["0.5.20", "0.5.23"].',
            field="releases",
        )
    for index, release in enumerate(releases):
        try:
            release_named(release)
        except UnknownRelease as error:
            raise UnknownRelease(error.detail, remedy=error.remedy, field=f"releases.{index}") from None
    facts = resolver.resolve(launch.model)
    out: list[OnRelease] = []
    for text in releases:
        out.append(_on(launch, facts, releases[0], text, out[-1] if out else None, gate))
    return tuple(out)


def _on(
    launch: Launch, facts: ModelFacts, first: str, text: str, before: OnRelease | None, gate: Gate | None
) -> OnRelease:
    as_written = check_facts(dataclasses.replace(launch, release=text), facts, gate)
    rewritten = translated(launch.arguments, release_named(first), release_named(text))
    if rewritten.arguments == launch.arguments:
        checked = as_written
    else:
        checked = check_facts(dataclasses.replace(launch, release=text, arguments=rewritten.arguments), facts, gate)
    return OnRelease(
        release=text,
        as_written=as_written,
        checked=checked,
        arguments=rewritten.arguments,
        rewritten=rewritten.notes,
        changes=() if before is None else _changes(before.checked, checked),
    )


def _changes(old: Checked, new: Checked) -> tuple[Change, ...]:
    before, after = _values(old), _values(new)
    return tuple(
        _because(key, before.get(key), after.get(key), old, new)
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    )


def _values(checked: Checked) -> dict[str, Any]:
    verdict = checked.verdict
    prediction = verdict.prediction
    values: dict[str, Any] = {"verdict": verdict.verdict, "outcome": prediction.outcome}
    values["error"] = f"{prediction.error.type}: {prediction.error.message}" if prediction.error else None
    values["findings"] = sorted({f"{f.rule} {f.severity}" for f in verdict.findings})
    for phase in PHASES:
        graph = (prediction.graph or {}).get(phase)
        for key, value in (graph.to_dict() if graph is not None else {}).items():
            values[f"{phase}.{key}"] = value
    values.update(prediction.args)
    return values


def _because(key: str, before: Any, after: Any, old: Checked, new: Checked) -> Change:
    for checked, whose in ((new, ""), (old, "no longer: ")):
        decision = _last(checked.verdict.ledger, key)
        if decision is not None:
            return Change(
                key=key,
                before=before,
                after=after,
                because=f"{whose}{decision.step}: {decision.why}",
                source=decision.source,
            )
    because = {
        "verdict": "see the other changes",
        "outcome": "see the error",
        "error": "the engine's own refusal",
        "findings": "rules that hold for one release only",
    }.get(key, "a default of the release")
    return Change(key=key, before=before, after=after, because=because)


def _last(ledger: Sequence[Decision], key: str) -> Decision | None:
    return next((decision for decision in reversed(ledger) if decision.key == key), None)
