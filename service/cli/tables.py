"""Plain tables for terminals, and lists as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.version import VERSION

FORMAT_VERSION = 1


def add_format(parser: argparse.ArgumentParser) -> None:
    """The two formats of a list."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default %(default)s")


def document(content: Mapping[str, Any]) -> str:
    """The content as a versioned JSON document."""
    return json.dumps({"version": FORMAT_VERSION, "graphgate": VERSION, **content}, indent=2)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below a head, in columns as wide as their widest cell; the last column is as long as it is."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head) - 1)]
    lines = (
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in (head, *rows)
    )
    return "\n".join(line.rstrip() for line in lines)
