"""Output formats of ``graphgate check``: one format, one file, each with ``render(answers, verbose)``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from service.cli.answers import Answer

FORMATS = ("text", "json", "sarif", "github")


class Format(Protocol):
    """What a module of this package offers."""

    def render(self, answers: Sequence[Answer], *, verbose: bool) -> str: ...


def render(name: str, answers: Sequence[Answer], *, verbose: bool) -> str:
    """The answers in that format."""
    return cast("Format", importlib.import_module(f"{__name__}.{name}")).render(answers, verbose=verbose)
