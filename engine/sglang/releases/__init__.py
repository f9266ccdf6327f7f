"""What differs between engine releases, as data: one folder a release, written by ``scripts/extract_release.py``.

``options.json`` holds the command line, ``tables.json`` the graph language, choice lists and environment variables;
further JSON files of a folder (allow-lists, architectures) are read by name through :meth:`Release.table`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from engine.errors import UnknownRelease
from engine.sglang.graph_config import GraphLanguage
from engine.sglang.ladders import Segments, as_segments
from engine.sglang.options import CommandLine

Version = tuple[int, int, int]

_FOLDER = Path(__file__).parent
_NUMBER = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:[.-]?(?:post|rc|dev|a|b)\d*)?", re.ASCII)


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """One engine release.

    ``text`` is the release whose data answer; ``asked`` the release that was asked for, and ``note`` says in a
    sentence where the two differ. ``options`` parses its command line; ``defaults`` is the value of every argument
    where nothing is given; ``graph`` its graph language; ``ladders`` its capture
    sizes (prefill, decode, speculative); ``tables`` the rest of its data. ``absent`` and ``absent_environment`` hold
    the arguments and environment variables that came after it, at the newest release's defaults: what a newer step
    reads of them is what the older release does without them.
    """

    version: Version
    text: str
    asked: str
    note: str | None
    options: CommandLine
    defaults: Mapping[str, Any]
    absent: Mapping[str, Any]
    absent_environment: Mapping[str, Any]
    tables: Mapping[str, Any]
    graph: GraphLanguage
    ladders: Mapping[str, Segments]
    _read: dict[str, Any] = field(default_factory=dict, repr=False)

    def table(self, name: str) -> Any:
        """The release's further data file ``NAME.json``, read once.

        Raises:
            KeyError: the release has no such file.
        """
        if name not in self._read:
            path = _FOLDER / self.text / f"{name}.json"
            if not path.is_file():
                raise KeyError(f"release {self.text} has no table {name}")
            self._read[name] = json.loads(path.read_text(encoding="utf-8"))
        return self._read[name]


@cache
def known_releases() -> tuple[str, ...]:
    """The releases whose data are here, oldest first."""
    return tuple(
        ".".join(map(str, version))
        for version in sorted(
            tuple(int(part) for part in folder.name.split("."))
            for folder in _FOLDER.iterdir()
            if _NUMBER.fullmatch(folder.name) and (folder / "options.json").is_file()
        )
    )


def newest_release() -> Release:
    """The newest release known."""
    return release_named(known_releases()[-1])


@cache
def _data(text: str) -> Release:
    folder = _FOLDER / text
    command_line = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    tables = json.loads((folder / "tables.json").read_text(encoding="utf-8"))
    language = GraphLanguage.from_table(tables["graph"])
    newest = known_releases()[-1]
    later = _data(newest) if text != newest else None
    major, minor, patch = (int(part) for part in text.split("."))
    return Release(
        version=(major, minor, patch),
        text=text,
        asked=text,
        note=None,
        options=CommandLine.from_rows(command_line["options"], language),
        defaults=command_line["defaults"],
        absent=_missing(later.defaults, command_line["defaults"]) if later else {},
        absent_environment={
            name: row["default"] for name, row in _missing(later.tables["environment"], tables["environment"]).items()
        }
        if later
        else {},
        tables=tables,
        graph=language,
        ladders={name: as_segments(rows) for name, rows in tables["ladders"].items()},
    )


def _missing(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in newer.items() if name not in older}


@cache
def release_named(text: str) -> Release:
    """The release of that number. A newer one than all known is answered as the newest known, with a note.

    Raises:
        UnknownRelease: not a release number, or a release that is not covered.
    """
    known = known_releases()
    found = _NUMBER.fullmatch(text.strip())
    shown = text if len(text) <= 40 else text[:40] + "..."
    if found is None:
        raise UnknownRelease(
            f"{shown!r} is not a release number.",
            remedy=f"Write it like {known[-1]}; covered: {', '.join(known)}.",
            field="engine.version",
        )
    number = ".".join(str(int(part)) for part in found.groups())
    if number in known:
        release = _data(number)
        if number == text.strip().removeprefix("v"):
            return release
        return _other(release, text, f"Release {shown} is answered as {number}.")
    asked = tuple(int(part) for part in found.groups())
    if asked > _data(known[-1]).version:
        return _other(
            _data(known[-1]),
            text,
            f"Release {shown} is newer than those known here; it is answered as {known[-1]}.",
        )
    raise UnknownRelease(
        f"Release {shown} is not covered.",
        remedy=f"Covered: {', '.join(known)}, and newer ones as {known[-1]}.",
        field="engine.version",
    )


def _other(release: Release, asked: str, note: str) -> Release:
    return Release(
        version=release.version,
        text=release.text,
        asked=asked,
        note=note,
        options=release.options,
        defaults=release.defaults,
        absent=release.absent,
        absent_environment=release.absent_environment,
        tables=release.tables,
        graph=release.graph,
        ladders=release.ladders,
        _read=release._read,
    )
