"""What a release knows about models: its configuration classes and its lists of architectures, read once a release.

The files ``model_classes.json`` and ``architectures.json`` in the release's folder are made by
``scripts/extract_model_classes.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_RELEASES = Path(__file__).parent / "releases"


class ArchitectureLists:
    """The release's answers for each architecture name. Sets of names; ``shapes`` what it derives for unusual ones."""

    __slots__ = ("_sets", "linear_specs", "quantization_methods", "shapes", "version")

    def __init__(self, data: Mapping[str, Any], release: str) -> None:
        self.version = tuple(int(part) for part in release.split("."))
        self._sets: dict[str, frozenset[str]] = {
            key: frozenset(value)
            for key, value in data.items()
            if isinstance(value, list) and key not in ("quantization_methods", "linear_specs")
        }
        self.quantization_methods: tuple[str, ...] = tuple(data["quantization_methods"])
        self.linear_specs: tuple[dict[str, Any], ...] = tuple(data["linear_specs"])
        self.shapes: Mapping[str, Mapping[str, list[Any]]] = data["shapes"]

    def of(self, question: str) -> frozenset[str]:
        """The architectures for which the engine's answer is yes; empty where the release has no such question."""
        return self._sets.get(question, frozenset())

    def since(self, *version: int) -> bool:
        """Whether the lists are of that release or a newer one."""
        return self.version >= version

    def any(self, question: str, architectures: tuple[str, ...]) -> bool:
        """Whether the answer is yes for one of the architectures."""
        return not self.of(question).isdisjoint(architectures)


@cache
def model_classes(release: str) -> dict[str, dict[str, Any]]:
    """model_type -> what that release's configuration class fills in, by the release's text ("0.5.23")."""
    path = _RELEASES / release / "model_classes.json"
    data: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["model_classes"]
    return data


@cache
def architecture_lists(release: str) -> ArchitectureLists:
    """The release's lists of architectures, by the release's text ("0.5.23")."""
    path = _RELEASES / release / "architectures.json"
    return ArchitectureLists(json.loads(path.read_text(encoding="utf-8"))["architectures"], release)
