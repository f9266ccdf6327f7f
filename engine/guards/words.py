"""Command lines rewritten option by option, by the engine's own names for what an option sets.

An option is found by what it sets, so that its other spellings, its abbreviations and its retired aliases are found
too. Every function leaves the operator's other words and their order alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from engine.guards.rewriting import CONFIG_OPTION
from engine.launch import Phase
from engine.sglang.releases import Release, release_named

_FLAGS = {
    "backend": "cuda_graph_backend_{phase}",
    "max_bs": "cuda_graph_max_bs_{phase}",
    "bs": "cuda_graph_bs_{phase}",
    "max_seq_len": "cuda_graph_max_seq_len_{phase}",
    "max_context_size": "cuda_graph_prefill_max_context",
}
"""The argument by which a flag sets each key of a phase."""


def options_in(arguments: Sequence[str], release: Release) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """The words, one group an option, each with the argument that it sets (None: no option of this release)."""
    current: list[str] = []
    sets: str | None = None
    for word in arguments:
        named = _argument(word.partition("=")[0], release) if word.startswith("-") else None
        if named is not None or (word.startswith("--") and len(word) > 2):
            if current:
                yield sets, tuple(current)
            current, sets = [word], named
        else:
            current.append(word)
    if current:
        yield sets, tuple(current)


def without(arguments: Sequence[str], release: Release, *names: str) -> tuple[str, ...]:
    """The command line without the options that set these arguments."""
    return tuple(word for sets, words in options_in(arguments, release) if sets not in names for word in words)


def with_option(arguments: Sequence[str], release: Release, name: str, *values: object) -> tuple[str, ...]:
    """The command line with one argument set by its own option (no values: a switch), and by nothing else."""
    return (*without(arguments, release, name), spelling(name, release), *map(str, values))


def written(arguments: Sequence[str], release: Release, name: str) -> str | None:
    """The words that set an argument, as the operator wrote them; None where none does."""
    found = None
    for sets, words in options_in(arguments, release):
        if sets == name:
            found = " ".join(words)
    return found


def with_graph(arguments: Sequence[str], release: Release, phase: Phase, key: str, *values: object) -> tuple[str, ...]:
    """The command line with one graph setting set by its flag, and by nothing else; no values: by nothing."""
    flag = _FLAGS[key].format(phase=phase)
    kept = _without_in_json(without(arguments, release, flag), release, phase, key)
    return (*kept, spelling(flag, release), *map(str, values)) if values else kept


def spelling(name: str, release: Release) -> str:
    """The option that sets an argument, as this release writes it."""
    return _spellings(release.text).get(name, "--" + name.replace("_", "-"))


@cache
def _spellings(release: str) -> dict[str, str]:
    own: dict[str, str] = {}
    for string, option in release_named(release).options.by_string.items():
        plain = "--" + option.dest.replace("_", "-")
        if string == plain or option.dest not in own:
            own[option.dest] = string
    return own


def _argument(name: str, release: Release) -> str | None:
    table = release.options.by_string
    if name in table:
        return table[name].dest
    if not name.startswith("--") or len(name) < 4:
        return None
    near = {table[string].dest for string in release.options.beginning_with(name)}
    return next(iter(near)) if len(near) == 1 else None


def _without_in_json(arguments: Sequence[str], release: Release, phase: Phase, key: str) -> tuple[str, ...]:
    out: list[str] = []
    for sets, words in options_in(arguments, release):
        out.extend(_less(words, phase, key) if sets == "cuda_graph_config" else words)
    return tuple(out)


def _less(words: tuple[str, ...], phase: Phase, key: str) -> tuple[str, ...]:
    value = words[0].partition("=")[2] or (words[1] if len(words) > 1 else "")
    try:
        config: Any = json.loads(value)
    except ValueError:
        return words
    settings = config.get(phase) if isinstance(config, dict) else None
    if not isinstance(settings, dict) or key not in settings:
        return words
    del settings[key]
    if not settings:
        del config[phase]
    return (CONFIG_OPTION, json.dumps(config)) if config else ()
