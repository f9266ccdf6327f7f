"""The engine's ``--config FILE``: the options of a YAML file, put before those of the command line.

Facts: ``sglang/srt/utils/server_args_config_parser.py`` (0.5.23; until 0.5.18 in ``sglang/srt``). The command line
wins, as the later word does. A file cannot hold every option: where the parser's action is neither a plain value nor a
plain switch, the engine refuses it. No file is read here: who may read one hands over what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from engine.sglang.options import Option
from engine.sglang.releases import Release
from engine.sglang.resolution import Refusal

OPTION = "--config"
SUFFIXES = (".yaml", ".yml")

_BY_EVERY_SPELLING = (0, 5, 23)
_PLAIN = frozenset({"StoreAction", "StoreTrueAction"})


def file_named(words: Sequence[str]) -> str | None:
    """The path that the command line names; written with an equals sign, the engine does not see it.

    Raises:
        Refusal: ValueError where several are named, or none behind the option.
    """
    places = [index for index, word in enumerate(words) if word == OPTION]
    if len(places) > 1:
        raise Refusal("ValueError", "Multiple config files specified! Only one allowed.")
    if not places:
        return None
    if places[0] == len(words) - 1:
        raise Refusal("ValueError", "No config file specified after --config flag!")
    return words[places[0] + 1]


def merged(words: Sequence[str], content: Any, release: Release) -> list[str]:
    """The command line with the file's options before its own, and without ``--config``.

    ``content`` is what YAML makes of the file.

    Raises:
        Refusal: the content is no mapping, or holds an option that a file cannot.
    """
    if file_named(words) is None:
        return list(words)
    at = list(words).index(OPTION)
    return [*_words_of(content, release), *words[:at], *words[at + 2 :]]


def _words_of(content: Any, release: Release) -> list[str]:
    if content is None:
        return []
    if not isinstance(content, Mapping):
        raise Refusal("ValueError", "Config file must contain a dictionary at root level")
    switches, unsupported = _keys(release)
    out: list[str] = []
    for key, value in content.items():
        if not isinstance(key, str):
            raise Refusal("AttributeError", f"'{type(key).__name__}' object has no attribute 'replace'")
        name = key.replace("-", "_")
        if name in unsupported:
            raise Refusal("ValueError", f"Unsupported config option '{name}' with action '{unsupported[name]}'")
        if value is True and name in switches:
            out.append(f"--{key}")
        elif isinstance(value, bool):
            out.extend(() if name in switches else (f"--{key}", str(value).lower()))
        elif isinstance(value, list):
            out.extend((f"--{key}", *map(str, value)) if value else ())
        else:
            out.extend((f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)))
    return out


@cache
def _keys(release: Release) -> tuple[frozenset[str], Mapping[str, str]]:
    """The keys that are plain switches, and those that a file cannot hold with the parser's action for them."""
    options = release.options.options
    every = release.version >= _BY_EVERY_SPELLING
    switches = frozenset(key for o in options if o.action == "StoreTrueAction" for key in _spellings(o, every))
    plain = [o for o in options if o.action in _PLAIN or (every and o.nargs is None)]
    read = {key for o in plain for key in _spellings(o, every)} if every else set()
    unsupported = {
        key: o.action
        for o in options
        if o not in plain and "--help" not in o.strings
        for key in _spellings(o, every)
        if key not in read
    }
    return switches, unsupported


def _spellings(option: Option, every: bool) -> set[str]:
    """Under which keys a file may name the option: before 0.5.23 its destination alone."""
    long = {string[2:].replace("-", "_") for string in option.strings if string.startswith("--")}
    return {option.dest, *long} if every else {option.dest}
