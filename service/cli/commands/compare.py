"""What an upgrade changes for one launch: each release's answer, the words rewritten for it, and every difference.

  graphgate compare MODEL --from 0.5.20 --to 0.5.23 [--to ...] -- SGLANG-ARGUMENTS

The arguments are written for the release of --from. Several --to are compared one after the other.

Exit codes: 0 the last release accepts or adjusts the launch, 1 it is rejected, 2 the question is unusable.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from engine.comparison import OnRelease, compare
from engine.launch import ModelRef
from engine.models.facts import ModelFacts
from service.cli.answers import EXIT_NO, EXIT_OK
from service.cli.gate import gate
from service.cli.launches import add_launch, facts_of_ref, launch_of
from service.cli.tables import add_format, document
from service.cli.words import Style, clean, coloured, paint, words, wrapped

_STYLES: dict[str, Style] = {"accepted": "green", "adjusted": "yellow", "rejected": "red"}


class _Resolver:
    """Models as the command line takes them, local paths included."""

    def resolve(self, ref: ModelRef) -> ModelFacts:
        return facts_of_ref(ref)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.usage = "graphgate compare MODEL --from RELEASE --to RELEASE [options] -- SGLANG-ARGUMENTS"
    add_launch(parser, release=False)
    parser.add_argument("--from", required=True, dest="release", metavar="RELEASE", help="the release it runs on")
    parser.add_argument("--to", required=True, action="append", metavar="RELEASE", help="the release it shall run on")
    add_format(parser)


def run(asked: argparse.Namespace) -> int:
    """Compare."""
    rows = compare(launch_of(asked), [asked.release, *asked.to], _Resolver(), gate())
    if asked.format == "json":
        print(document({"releases": [row.to_dict() for row in rows]}))
    else:
        print("\n\n".join("\n".join(_lines(row)) for row in rows))
    return EXIT_NO if rows[-1].checked.verdict.verdict == "rejected" else EXIT_OK


def _lines(row: OnRelease) -> Iterator[str]:
    verdict = row.checked.verdict
    head, *rest = wrapped(f"SGLang {row.release}: {verdict.verdict}: {clean(verdict.summary)}", hanging="  ")
    yield head.replace(verdict.verdict, paint(verdict.verdict, _STYLES[verdict.verdict], coloured()), 1)
    yield from rest
    for note in verdict.notes:
        yield from wrapped(f"Note: {clean(note)}", indent="  ", hanging="    ")
    if row.rewritten:
        yield from wrapped(f"Launch it there as: {words(row.arguments)}", indent="  ", hanging="    ")
    for note in row.rewritten:
        yield from wrapped(clean(note), indent="    ", hanging="      ")
    for change in row.changes:
        text = f"{change.key}: {_shown(change.before)} -> {_shown(change.after)}; {change.because}"
        yield from wrapped(clean(text), indent="  ", hanging="    ")


def _shown(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 8:
        return f"{len(value)} values, {value[0]} to {value[-1]}"
    return str(value)
