"""The facts of a model that bear on CUDA graphs, as read from its config.json.

MODEL is a hub id (org/name), or a local folder or config.json. It is taken for a path if it begins
with ./, ../ or / or ends in .json, and for an id otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from service.cli.launches import add_model, facts_of_ref, model_ref
from service.cli.tables import add_format, document
from service.cli.words import clean, wrapped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    add_model(parser)
    add_format(parser)


def run(asked: argparse.Namespace) -> int:
    """Print the facts."""
    facts = facts_of_ref(model_ref(asked)).summary()
    print(document({"model": facts}) if asked.format == "json" else "\n".join(_lines(facts)))
    return 0


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name == "layer_kinds":
            yield from wrapped(f"{name:<18} {_runs(value)}", hanging=" " * 19)
        elif value not in (None, [], ""):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield from wrapped(clean(f"{name:<18} {shown}"), hanging=" " * 19)


def _runs(kinds: Iterable[str]) -> str:
    """Layer kinds in order, what repeats counted.

    >>> _runs(["gdn", "gdn", "gdn", "attention"] * 2)
    '2 x (3 gdn, attention)'
    """
    kinds = list(kinds)
    for length in range(1, len(kinds) // 2 + 1):
        times, left = divmod(len(kinds), length)
        if not left and kinds == kinds[:length] * times:
            inner = _counted(kinds[:length])
            return f"{times} {inner}" if length == 1 else f"{times} x ({inner})"
    return _counted(kinds)


def _counted(kinds: Sequence[str]) -> str:
    runs = [(kind, len(list(group))) for kind, group in groupby(kinds)]
    return ", ".join(kind if times == 1 else f"{times} {kind}" for kind, times in runs)
