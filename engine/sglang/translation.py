"""A command line of one release rewritten for another: renamed options renamed, removed ones replaced or dropped.

What replaces what comes from :mod:`engine.sglang.retired`; a graph backend that the target has removed becomes the
target's own default for that phase.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.sglang.releases import Release
from engine.sglang.retired import retired_in

_CONFIG = "--cuda-graph-config"
_BACKENDS = {"--cuda-graph-backend-decode": "decode", "--cuda-graph-backend-prefill": "prefill"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """The rewritten command line, and a sentence for each word that changed."""

    arguments: tuple[str, ...]
    notes: tuple[str, ...]


def translated(arguments: Sequence[str], source: Release, target: Release) -> Translated:
    """The command line, written for ``source``, as ``target`` takes it."""
    out: list[str] = []
    notes: list[str] = []
    for words in _options(arguments, source):
        written, note = _one(words, source, target)
        out.extend(written)
        if note:
            notes.append(note)
    return Translated(arguments=tuple(out), notes=tuple(notes))


def _options(arguments: Sequence[str], source: Release) -> Iterator[list[str]]:
    """The words, one list an option: the option's own word and its values."""
    current: list[str] = []
    for word in arguments:
        if word.startswith("--") and _canonical(word.partition("=")[0], source) is not None and current:
            yield current
            current = []
        current.append(word)
    if current:
        yield current


def _canonical(name: str, release: Release) -> str | None:
    """The option that a name or an unambiguous beginning of it means in that release."""
    if name in release.options.by_string:
        return name
    near = {release.options.by_string[s].dest: s for s in release.options.beginning_with(name)}
    return next(iter(near.values())) if len(near) == 1 else None


def _one(words: list[str], source: Release, target: Release) -> tuple[list[str], str | None]:
    name, equals, inline = words[0].partition("=")
    canonical = _canonical(name, source)
    if canonical is None:
        return words, None
    values = ([inline] if equals else []) + words[1:]
    if canonical in target.options.by_string:
        if canonical == _CONFIG and values:
            return _config(words, values, target)
        if canonical in _BACKENDS and values and values[0] in target.graph.retired:
            default = str(target.graph.defaults[_BACKENDS[canonical]]["backend"])
            return [
                canonical,
                default,
            ], f"{canonical} {values[0]} was removed; {default} is the default of {target.text}."
        if canonical == name or _canonical(name, target) == canonical:
            return words, None
        return [canonical, *values], f"{name} is written out as {canonical}, since it is ambiguous in {target.text}."
    gone = retired_in([canonical], target)
    instead = gone[0].instead if gone else None
    if instead is None or not instead.startswith("--") or " " in instead:
        return [], f"{canonical} is dropped: {target.text} does not have it." + (f" {instead}" if instead else "")
    flag, fixed, value = instead.partition("=")
    return [flag, *([value] if fixed else values)], f"{canonical} became {instead.replace('=', ' ')}."


def _config(words: list[str], values: list[str], target: Release) -> tuple[list[str], str | None]:
    try:
        config: Any = json.loads(values[0])
    except ValueError:
        return words, None
    if not isinstance(config, dict):
        return words, None
    changed: list[str] = []
    for phase, settings in config.items():
        if not isinstance(settings, dict) or phase not in target.graph.keys:
            continue
        if settings.get("backend") in target.graph.retired:
            default = target.graph.defaults[phase]["backend"]
            changed.append(
                f"{phase}.backend {settings['backend']} was removed; {default} is the default of {target.text}."
            )
            settings["backend"] = default
        for key in [key for key in settings if key not in target.graph.keys[phase]]:
            changed.append(f"{phase}.{key} is dropped: {target.text} does not have it.")
            del settings[key]
    return ([_CONFIG, json.dumps(config)], " ".join(changed)) if changed else (words, None)
