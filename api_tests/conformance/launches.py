"""The launches of ``launches*.txt``."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CONFIGS = FOLDER / "configs"
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the file, taken apart."""

    line: str
    gpu: str
    model: str
    environment: Mapping[str, str]
    arguments: tuple[str, ...]


@cache
def cases() -> tuple[Case, ...]:
    """Every launch of the files, in order."""
    lines = [
        line for path in sorted(FOLDER.glob("launches*.txt")) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return tuple(_case(line) for line in lines if line and not line.startswith("#"))


def _case(line: str) -> Case:
    gpu, model, *words = shlex.split(line)
    environment: dict[str, str] = {}
    while words and (found := _VARIABLE.fullmatch(words[0])):
        environment[found.group(1)] = found.group(2)
        words = words[1:]
    return Case(line=line, gpu=gpu, model=model, environment=environment, arguments=tuple(words))


@cache
def config(model: str) -> dict[str, Any]:
    """The config.json of that name."""
    value: dict[str, Any] = json.loads((CONFIGS / model).with_suffix(".json").read_text(encoding="utf-8"))
    return value
