"""An unusable question, told to the person at the command line: what is wrong, where, and what to change."""

from __future__ import annotations

import json
import sys

from engine.errors import QuestionError
from service.cli.words import clean, wrapped

FORMAT_VERSION = 1

_OPTIONS = {
    "hardware.gpu": "--gpu",
    "hardware.count": "--gpu-count",
    "engine.version": "--release",
    "model": "MODEL",
    "model.id": "MODEL",
    "model.path": "MODEL",
    "model.config": "--config-json",
    "model.revision": "--revision",
    "arguments": "the arguments after --",
}


class UsageError(QuestionError):
    """The command line itself cannot be understood."""

    slug = "usage"
    title = "The command line cannot be understood"


def option_for(field: str | None) -> str | None:
    """The place on the command line that a field of a request stands for.

    >>> option_for("capture.sizes"), option_for("defaults.prefill.backend")
    ('--sizes', '--defaults (prefill.backend)')
    """
    if field is None:
        return None
    if field in _OPTIONS:
        return _OPTIONS[field]
    head, _, rest = field.partition(".")
    if head == "arguments":
        return f"word {rest} of the arguments after --"
    if head == "capture":
        return "--" + rest.replace("_", "-")
    if head == "environment":
        return f"--env {rest}"
    if head == "defaults":
        return f"--defaults ({rest})" if rest else "--defaults"
    return field


def problem(error: QuestionError) -> dict[str, str | None]:
    """The error as JSON."""
    return {"code": error.slug, "detail": error.detail, "remedy": error.remedy or None, "field": error.field}


def report(error: QuestionError, *, as_json: bool) -> None:
    """Print the error: for people to standard error, and for programs as JSON to standard output."""
    if as_json:
        print(json.dumps({"version": FORMAT_VERSION, "error": problem(error)}, indent=2))
    where = option_for(error.field)
    place = f"{where}: " if where else ""
    lines = wrapped(f"graphgate: error: {place}{clean(error.detail)} [{error.slug}]", hanging="  ")
    if error.remedy:
        lines += wrapped(f"  What to change: {clean(error.remedy)}", hanging="    ")
    print("\n".join(lines), file=sys.stderr)
