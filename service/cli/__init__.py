"""The ``graphgate`` command. One command, one file below ``commands/``; one output format, one file below ``formats/``.

Exit codes of every command: 0 done, 1 the answer is no (a rejected launch, a failed capture), 2 the question itself is
unusable, 70 graphgate itself failed (GRAPHGATE_DEBUG=1 shows where). Only the modules of the command that was asked for
are imported.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from engine.errors import QuestionError
from service.cli.parser import parse

__all__ = ["main"]

EXIT_UNUSABLE = 2
EXIT_FAILED = 70
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name with stray bytes must not end in a traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_PIPE_CLOSED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("GRAPHGATE_DEBUG"):
            raise
        print(
            f"graphgate: failed: {type(error).__name__}: {error}\n"
            "  This is a mistake in graphgate, not in the question. GRAPHGATE_DEBUG=1 shows where it happened.",
            file=sys.stderr,
        )
        return EXIT_FAILED
    return code


def _run(words: list[str]) -> int:
    asked = None
    try:
        command, asked = parse(words)
        return command.run(asked)
    except SystemExit as ended:  # --help and --version
        return ended.code if isinstance(ended.code, int) else 0
    except QuestionError as error:
        from service.cli.problems import report  # only where something is wrong

        report(error, as_json=_wants_json(words) if asked is None else getattr(asked, "format", None) == "json")
        return EXIT_UNUSABLE


def _wants_json(words: list[str]) -> bool:
    """Whether a command line that cannot be understood asks for JSON all the same."""
    own = words[: words.index("--")] if "--" in words else words
    return "--format=json" in own or any(pair == ("--format", "json") for pair in pairwise(own))
