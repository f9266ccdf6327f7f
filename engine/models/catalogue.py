"""Well-known models that need no hub: ids and the part of their configs that bears on the answer.

``catalogue.json`` and ``config_keys.json`` are made by ``scripts/make_catalogue.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from engine.models.facts import ModelFacts
from engine.models.reading import facts_of

_HERE = Path(__file__).parent
NOTE = "From the packaged catalogue, not from the hub: the repository may have changed since."


@cache
def _lines() -> Mapping[str, tuple[str, str]]:
    """Every model's id and entry, unparsed, by id in lower case (the hub does not tell letter cases apart).

    The file has one model a line, so that an answer parses one entry and not two hundred.
    """
    found: dict[str, tuple[str, str]] = {}
    for line in (_HERE / "catalogue.json").read_text(encoding="utf-8").splitlines():
        quoted, between, entry = line.partition('": ')
        if between and quoted.startswith('"'):
            found[quoted[1:].lower()] = (quoted[1:], entry.rstrip(","))
    return found


def ids() -> tuple[str, ...]:
    """All ids of the catalogue, in order."""
    return tuple(model_id for model_id, _ in _lines().values())


@lru_cache(maxsize=512)
def find(model_id: str) -> ModelFacts | None:
    """The facts of a model of the catalogue; None where the catalogue does not have it."""
    line = _lines().get(model_id.lower())
    if line is None:
        return None
    entry = json.loads(line[1])
    facts = facts_of(entry["config"], model_id=line[0], source="catalogue")
    completed = entry.get("completed")
    if completed:
        return with_notes(facts, NOTE, f"Made from an incomplete copy of the config; added: {', '.join(completed)}.")
    return with_notes(facts, NOTE)


def with_notes(facts: ModelFacts, *notes: str) -> ModelFacts:
    """The same facts with more notes."""

    return replace(facts, notes=(*facts.notes, *notes))


def near(model_id: str, most: int = 3) -> list[str]:
    """Ids of the catalogue that look like this one."""
    from difflib import get_close_matches  # 5 ms to import, needed for an error message only

    by_name: dict[str, str] = {}
    for known in ids():
        by_name[known.lower()] = known
        by_name.setdefault(known.rsplit("/", 1)[-1].lower(), known)
    asked = model_id.lower()
    found = get_close_matches(asked, by_name, n=most, cutoff=0.75)
    found += get_close_matches(asked.rsplit("/", 1)[-1], by_name, n=most, cutoff=0.8)
    return list(dict.fromkeys(by_name[name] for name in found))[:most]


@cache
def config_keys() -> frozenset[str]:
    """The keys, at any depth, that a catalogue entry keeps of a config."""
    return frozenset(json.loads((_HERE / "config_keys.json").read_text(encoding="utf-8"))["keys"])


def pruned(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config that a catalogue entry keeps: :func:`config_keys`, nested as in the file."""
    keys = config_keys()
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if key not in keys:
            continue
        kept[key] = pruned(value) if isinstance(value, Mapping) and value else value
    return kept
