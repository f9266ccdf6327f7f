"""The nearest right word for a misspelt option, phase, key or backend in a parser's refusal."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from engine.sglang.releases import Release

_LOOKED_UP = 5
"""Misspelt options beyond these are not looked up: each is held against hundreds, which takes milliseconds."""

_UNKNOWN_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_QUOTED_WORD = re.compile(r"(?:unknown (?:phase|key) |backend=|invalid choice: )'([^']*)'")
_OFFERED = re.compile(r"(?:expected one of|allowed:|choose from) ?\(?(.*)")


def meant(message: str, release: Release) -> str:
    """A sentence that names the nearest right word, or "" where none is near.

    ``message`` is the engine's own refusal; what it offers is where the word is looked for.
    """
    if "unrecognized arguments:" in message:
        words = _UNKNOWN_OPTION.findall(message.split("unrecognized arguments:", 1)[1])[:_LOOKED_UP]
        return _sentence(words, release.options.by_string)
    found = _QUOTED_WORD.search(message)
    offered = _OFFERED.search(message)
    if found is None or offered is None:
        return ""
    return _sentence([found.group(1)], re.findall(r"[\w-]+", offered.group(1)))


def _sentence(words: Iterable[str], known: Iterable[str]) -> str:
    choices = [word for word in known if word]
    near = [match for word in words for match in difflib.get_close_matches(word.lower(), choices, n=1, cutoff=0.75)]
    return f" Did you mean {' and '.join(near)}?" if near else ""
