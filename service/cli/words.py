"""Text for terminals: wrapped to the width, free of control characters, coloured only where that is wanted."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from typing import Literal

WIDEST = 100
NARROWEST = 40

Style = Literal["red", "yellow", "green", "bold", "dim"]
_CODES: dict[Style, str] = {"red": "31;1", "yellow": "33;1", "green": "32;1", "bold": "1", "dim": "2"}


def width() -> int:
    """Columns to write in: the terminal's, at most 100; 100 where the output is no terminal."""
    try:  # shutil's function does the same, and brings compression libraries that cost every start 10 ms
        columns = int(os.environ.get("COLUMNS", "")) or WIDEST
    except ValueError:
        try:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns or WIDEST
        except (AttributeError, ValueError, OSError):
            columns = WIDEST
    return max(NARROWEST, min(columns, WIDEST))


def wrapped(text: str, *, hanging: str = "", indent: str = "") -> list[str]:
    """The text in lines; options and addresses are never broken."""
    return textwrap.wrap(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=hanging or indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def clean(text: str) -> str:
    """The text without what could steer a terminal; line ends become spaces."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else " " if c in "\n\r\t" else c.encode("unicode_escape").decode("ascii") for c in text
    )


def words(arguments: Sequence[str]) -> str:
    """Arguments as a shell takes them."""
    return clean(shlex.join(arguments))


def coloured() -> bool:
    """Whether standard output takes colours: a terminal, and NO_COLOR is unset or empty."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style, on: bool) -> str:
    """The text in that style, where colours are ``on``."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if on else text
