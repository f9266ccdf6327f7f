"""What becomes of one launch of an object, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.manifests import FoundLaunch, Silence
from engine.models.facts import ModelFacts
from engine.verdict import Verdict

LONGEST_WARNING = 120
MOST_WARNINGS = 5
_LONGEST_MESSAGE = 4000
_FROM_ELSEWHERE = ("The hub ", "From an earlier answer of the hub")
"""How the notes of a model begin that say that the hub was not the one to answer."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a launch is denied: the rule's id, or what kind of error; ``place`` is the container's path."""

    rule: str
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One launch: reasons to deny it, warnings, and what is kept of it in the API server's audit log."""

    verdict: str
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


def examined(found: FoundLaunch, verdict: Verdict, facts: ModelFacts, silence: Silence) -> Outcome:
    """What follows from a verdict."""
    place, name = found.path, found.container
    reasons: list[Reason] = []
    if verdict.verdict == "rejected":
        if verdict.prediction.error is not None:
            reasons.append(Reason(verdict.prediction.error.type, f"container {name}: {verdict.summary}", place))
        reasons += [
            Reason(f.rule, f"container {name}: {f.rule} {f.slug}: {f.message} {f.remedy}".rstrip(), place)
            for f in verdict.findings
            if f.severity == "error"
        ]
    warnings = [f"{f.rule} {f.slug}: {f.message}" for f in verdict.findings if f.severity == "warning"]
    if verdict.verdict == "adjusted" and not warnings:
        warnings.append(verdict.summary)
    return Outcome(
        verdict=verdict.verdict,
        reasons=tuple(reasons),
        warnings=tuple(short(name, text) for text in (*_said_first(found, facts, verdict, silence), *warnings)),
        rules=tuple(dict.fromkeys(f.rule for f in verdict.findings)),
    )


def _said_first(found: FoundLaunch, facts: ModelFacts, verdict: Verdict, silence: Silence) -> Iterator[str]:
    """What the answer rests on, where the object or the hub left it open."""
    elsewhere = next((note for note in facts.notes if note.startswith(_FROM_ELSEWHERE)), None)
    if elsewhere is not None:
        known = "the packaged catalogue" if facts.source == "catalogue" else "an earlier answer"
        yield f"the hub could not be asked; examined by {known}"
    assumed = [
        text
        for said, text in (
            (found.release, f"release {silence.release}"),
            (found.gpu_product, f"GPU {silence.gpu}"),
            (found.gpu_count, f"{silence.gpu_count} GPUs"),
        )
        if said is None
    ]
    if assumed:
        yield f"the manifest does not say, so assumed: {', '.join(assumed)}"
    if verdict.notes and found.release is not None:
        yield verdict.notes[0]
    if found.unread:
        yield f"not known here, and not examined: {', '.join(found.unread)}"
    if found.unknown:
        yield f"values known in the cluster only: {', '.join(found.unknown)}"


def unknown(found: FoundLaunch | None, why: str, *, deny: bool) -> Outcome:
    """A launch, or the whole object (``found`` None), could not be examined."""
    name = None if found is None else found.container
    if deny:
        where = "the object" if name is None else f"container {name}"
        text = f"{where} cannot be examined, and GRAPHGATE_ADMISSION_ON_UNKNOWN is deny: {why}"
        return Outcome("unknown", (Reason("Unknown", text, "" if found is None else found.path),))
    return Outcome("unknown", warnings=(short(name, f"allowed, but not examined: {why}"),))


def short(container: str | None, text: str) -> str:
    """One warning, cut at a word where it is too long."""
    whole = " ".join((f"{container}: {text}" if container else text).split())
    if len(whole) <= LONGEST_WARNING:
        return whole
    cut = whole[: LONGEST_WARNING - 3]
    return cut[: cut.rfind(" ")].rstrip(" ,:;") + "..." if " " in cut[60:] else cut + "..."


def together(warnings: Sequence[str]) -> list[str]:
    """At most a handful; the last one then says how many more there are."""
    each = list(dict.fromkeys(warnings))
    if len(each) <= MOST_WARNINGS:
        return each
    rest = len(each) - MOST_WARNINGS + 1
    return [*each[: MOST_WARNINGS - 1], f"{rest} more warnings; graphgate check -f shows them all"]


def message(reasons: Sequence[Reason]) -> str:
    """All reasons as one text."""
    whole = "\n".join(dict.fromkeys(reason.text for reason in reasons))
    return whole if len(whole) <= _LONGEST_MESSAGE else whole[: _LONGEST_MESSAGE - 3] + "..."
