"""A container's environment and words, joined and expanded as the kubelet does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_DOWNWARD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_ENGINE = ("SGLANG_", "SGL_")
"""How variables begin that the engine itself reads."""


@dataclass(slots=True)
class Variables:
    """What the manifest says of a container's variables.

    ``values`` are known; ``elsewhere`` are names whose values stand in a secret, a config map or the node's state, and
    ``more`` tells that an ``envFrom`` may set others. ``unknown`` collects the references that could not be replaced.
    """

    values: dict[str, str] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    more: bool = False
    unknown: set[str] = field(default_factory=set)

    def expanded(self, word: str) -> str:
        """``$(NAME)`` replaced; a name without a value stays as it is, and ``$$`` is one dollar sign."""

        def value(match: re.Match[str]) -> str:
            if match.group(0) == "$$":
                return "$"
            known = self.values.get(match.group(1))
            if known is None:
                self.unknown.add(match.group(0))
                return match.group(0)
            return known

        return _REFERENCE.sub(value, word)

    def known(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Those of the variables whose values hold nothing unknown."""
        return {name: value for name, value in environment.items() if not any(mark in value for mark in self.unknown)}

    def unread(self) -> tuple[str, ...]:
        """The engine's variables without a known value, and ``envFrom`` where there may be more."""
        without = self.elsewhere | (set(self.values) - set(self.known(self.values)))
        names = sorted(name for name in without if name.startswith(_ENGINE))
        return (*names, *(["envFrom"] if self.more else []))


def variables_of(container: Mapping[str, Any], given: Mapping[str, str], metadata: Mapping[str, Any]) -> Variables:
    """The container's variables: later ones see earlier ones, and replace them.

    ``given`` are those that the workload's controller sets, ``metadata`` is the pod template's.
    """
    found = Variables(values=dict(given), more=bool(container.get("envFrom")))
    listed = container.get("env")
    entries = [
        entry
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
    ]
    later = [str(entry["name"]) for entry in entries]
    for entry in entries:
        later.pop(0)
        name, value = entry["name"], entry.get("value")
        if not value and isinstance(entry.get("valueFrom"), Mapping):
            value = _downward(entry["valueFrom"], metadata)
            if value is None:
                found.values.pop(name, None)
                found.elsewhere.add(name)
                continue
            found.values[name] = value
        else:
            found.values[name] = found.expanded("" if value is None else str(value))
            # A name that is defined further down only stays as it is written: that is text, and known.
            found.unknown -= {f"$({other})" for other in later if other not in found.elsewhere and not found.more}
        found.elsewhere.discard(name)
    return found


def _downward(source: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    """What the downward API says, where the manifest knows it already."""
    reference = source.get("fieldRef")
    path = reference.get("fieldPath") if isinstance(reference, Mapping) else None
    if path == "metadata.namespace":
        return _text(metadata.get("namespace"))
    match = _DOWNWARD.fullmatch(path) if isinstance(path, str) else None
    if match is None:
        return None
    kept = metadata.get(match.group(1))
    return _text(kept.get(match.group(2))) if isinstance(kept, Mapping) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
