"""Options that the release does not have.

## What it does
Looks at launches whose command line the release's parser refuses and another release's parser takes, and writes them
anew for this release.

## Why it is bad
The parser stops the server before anything else. Options of graphs were renamed in 0.5.20 and 0.5.22; an upgrade with
an unchanged command line is a container that restarts over and over.

## What to do
Use the suggested launch: renamed options under their new names, removed backends as the release's default.

## Exceptions
An option that no release has is a slip of the pen, and has no suggestion.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.sglang.releases import Release, known_releases, release_named
from engine.sglang.resolution import Refusal
from engine.sglang.translation import translated


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where another release takes the command line."""
    error = examined.predicted.prediction.error
    if error is None or error.stage != "parse":
        return
    target = examined.predicted.release
    source = _knowing(examined.launch.arguments, target)
    if source is None:
        return
    rewritten = translated(examined.launch.arguments, source, target)
    said = " ".join(rewritten.notes) or f"SGLang {source.text} takes these words."
    message = f"SGLang {target.text} does not take this command line, which {source.text} does. {said}"
    remedy = "Use the suggested launch." if rewritten.arguments != examined.launch.arguments else "Change the release."
    suggestion = rewritten.arguments if rewritten.arguments != examined.launch.arguments else None
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


def _knowing(arguments: tuple[str, ...], target: Release) -> Release | None:
    """The nearest release that takes the words: older ones first, the newest of them at the front."""
    known = known_releases()
    if target.text not in known:
        return None
    at = known.index(target.text)
    for name in (*reversed(known[:at]), *known[at + 1 :]):
        release = release_named(name)
        try:
            release.options.parse(list(arguments))
        except Refusal:
            continue
        return release
    return None


RULE = Rule(
    id="GG902",
    slug="removed-options",
    title="options that the release no longer has, or not yet",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("REMOVED_FLAG",),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(36478, "names of options diverge, and releases drop them"),
        report(38375, "the legacy names of graph options go away", pull=True),
        source("0.5.19", "arg_groups/argparse_actions.py", "the deprecated options, each with what replaces it"),
    ),
    check=check,
    refusals=True,
)
