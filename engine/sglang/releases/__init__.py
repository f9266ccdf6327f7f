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
    the arguments and environment variables that came after it, at the defaults of the release that brought them: what a
    newer step reads of them is what the older release does without them. ``initial`` is ``absent`` and ``defaults`` in
    one, for a launch to copy.
    """

    version: Version
    text: str
    asked: str
    note: str | None
    options: CommandLine
    defaults: Mapping[str, Any]
    absent: Mapping[str, Any]
    initial: dict[str, Any]
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
def _raw(text: str) -> tuple[Any, Any]:
    """The command line and the tables of one release, as they stand in its files."""
    command_line, tables = (
        json.loads((_FOLDER / text / name).read_text(encoding="utf-8")) for name in ("options.json", "tables.json")
    )
    return command_line, tables


def _came_later(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The defaults of arguments and of environment variables that came after a release, as they first were."""
    command_line, tables = _raw(text)
    arguments: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    known = known_releases()
    for newer in known[known.index(text) + 1 :]:
        its_line, its_tables = _raw(newer)
        for name, value in its_line["defaults"].items():
            if name not in command_line["defaults"]:
                arguments.setdefault(name, value)
        for name, row in its_tables["environment"].items():
            if name not in tables["environment"]:
                environment.setdefault(name, row["default"])
    return arguments, environment


@cache
def _data(text: str) -> Release:
    command_line, tables = _raw(text)
    language = GraphLanguage.from_table(tables["graph"])
    arguments, environment = _came_later(text)
    major, minor, patch = (int(part) for part in text.split("."))
    return Release(
        version=(major, minor, patch),
        text=text,
        asked=text,
        note=None,
        options=CommandLine.from_rows(command_line["options"], language),
        defaults=command_line["defaults"],
        absent=arguments,
        initial={**arguments, **command_line["defaults"]},
        absent_environment=environment,
        tables=tables,
        graph=language,
        ladders={name: as_segments(rows) for name, rows in tables["ladders"].items()},
    )


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
        initial=release.initial,
        absent_environment=release.absent_environment,
        tables=release.tables,
        graph=release.graph,
        ladders=release.ladders,
        _read=release._read,
    )
