"""A shell line that starts an engine, taken apart: environment, program, model, arguments.

Known programs: ``python -m sglang.launch_server``, ``sglang serve`` and ``python -m dynamo.sglang``, behind ``env``,
``exec``, ``nohup`` or assignments, with line continuations and quotes as a POSIX shell reads them. Nothing is expanded
or run: a variable or a substitution in the line is an error that asks for its value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import InvalidLaunch

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(.*/)?(python|pypy)[0-9.]*$")
_WRAPPERS = frozenset({"env", "exec", "nohup", "time", "sudo", "command"})
_MODULES = frozenset({"sglang.launch_server", "dynamo.sglang", "sglang.srt.entrypoints.http_server"})
_END = frozenset({";", "&", "&&", "|", "||", ">", ">>", "<", "2>", "2>&1", "&>"})
_KNOWN = "python -m sglang.launch_server, sglang serve, python -m dynamo.sglang"
FIELD = "launch_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """``model`` is a positional model, as ``sglang serve org/name`` has it; an option's stays in ``arguments``."""

    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    model: str | None = None


def parse_command(line: str) -> ParsedCommand:
    """Take a shell line apart.

    Raises:
        InvalidLaunch: quotes do not close, no engine is started, or a variable needs its value.
    """
    words = _words(line)
    environment: dict[str, str] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if _ASSIGNMENT.match(word):
            name, value = word.split("=", 1)
            environment[name] = value
        elif word == "export" or word in _WRAPPERS or (word in {";", "&&"} and environment):
            pass
        else:
            break
        index += 1
    rest = words[index:]
    arguments = _after_program(rest)
    arguments = _until_end(arguments)
    model = None
    if arguments and not arguments[0].startswith("-"):
        model, arguments = arguments[0], arguments[1:]
    return ParsedCommand(environment=environment, arguments=tuple(arguments), model=model)


def _words(line: str) -> list[str]:
    joined = re.sub(r"\\\r?\n", " ", line).strip()
    try:
        lexer = shlex.shlex(joined, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words = list(lexer)
    except ValueError as error:
        raise InvalidLaunch(
            f"The line is not a shell command: {str(error).lower()}.",
            remedy="Close every quote; put JSON into single quotes.",
            field=FIELD,
        ) from None
    unquoted = re.sub(r"'[^']*'", "", joined)
    found = re.search(r"\$\(|`|\$\{?[A-Za-z_]", unquoted)
    if found:
        shown = unquoted[found.start() : found.start() + 30].split()[0]
        raise InvalidLaunch(
            f"The line holds {shown}, which only a shell can expand.",
            remedy="Write its value instead.",
            field=FIELD,
        )
    return words


def _after_program(words: list[str]) -> list[str]:
    if words:
        program = words[0].rsplit("/", 1)[-1]
        if program == "sglang" and len(words) > 1 and words[1] == "serve":
            return words[2:]
        if _PYTHON.match(words[0]):
            for index, word in enumerate(words[1:], 1):
                if word == "-m" and index + 1 < len(words):
                    if words[index + 1] in _MODULES:
                        return words[index + 2 :]
                    break
                if not word.startswith("-"):
                    break
    shown = " ".join(words[:3])[:60] or "nothing"
    raise InvalidLaunch(
        f"The line does not start a known engine; it starts {shown!r}.",
        remedy=f"Known: {_KNOWN}.",
        field=FIELD,
    )


def _until_end(words: list[str]) -> list[str]:
    for index, word in enumerate(words):
        if word in _END:
            return words[:index]
    return words
