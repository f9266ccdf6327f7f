"""A shell line or script that starts an engine, taken apart: environment, program, model, arguments.

Known programs: ``python -m sglang.launch_server``, ``sglang serve`` and ``python -m dynamo.sglang``, behind ``env``,
``exec``, ``nohup``, a ``sh -c`` or assignments, anywhere in a script. Nothing is run: a variable without a value or a
substitution in the engine's own command is an error that asks for its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.errors import InvalidLaunch
from engine.shell_words import Word, statements

_PYTHON = re.compile(r"(.*/)?(python|pypy)[0-9.]*$")
_SHELL = re.compile(r"(.*/)?(ba|da|z|k|a)?sh$")
_WRAPPERS = frozenset(
    {"env", "exec", "export", "nohup", "time", "sudo", "command", "tini", "dumb-init", "--", "then", "do", "else"}
    | {"!", "{"}
)
_STARTERS = frozenset(
    {"catchsegv", "chrt", "gosu", "ionice", "mpirun", "ncu", "nice", "nsys", "numactl", "setpriv", "stdbuf", "su-exec"}
    | {"taskset", "timeout", "unbuffer", "uv", "xvfb-run"}
)
"""Programs that start another one behind options of their own, as entry point scripts (``*.sh``) do too."""
_MODULES = frozenset({"sglang.launch_server", "dynamo.sglang"})
_KNOWN = "python -m sglang.launch_server, sglang serve, python -m dynamo.sglang"
FIELD = "launch_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCommand:
    """``model`` is a positional model, as ``sglang serve org/name`` has it; an option's stays in ``arguments``.

    ``environment`` holds what the command itself assigns, not what it was started with; ``missing`` what stays in the
    words because only a running shell could know its value.
    """

    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    model: str | None = None
    missing: tuple[str, ...] = ()


def parse_command(line: str, environment: Mapping[str, str] | None = None, *, field: str = FIELD) -> ParsedCommand:
    """The launch in a shell line or script.

    Raises:
        InvalidLaunch: a quote does not close, no engine is started, or a variable needs its value.
    """
    found = find_command(line, environment, field=field)
    if found is not None:
        return found
    shown = " ".join(line.split()[:3])[:60] or "nothing"
    raise InvalidLaunch(
        f"The line does not start a known engine; it starts {shown!r}.", remedy=f"Known: {_KNOWN}.", field=field
    )


def find_command(
    script: str,
    environment: Mapping[str, str] | None = None,
    *,
    field: str = FIELD,
    positional: Sequence[str] | None = None,
    keep_missing: bool = False,
) -> ParsedCommand | None:
    """The first launch in a shell script; None where it starts no engine.

    ``positional`` are the words behind ``sh -c SCRIPT``, None where they are not known. With ``keep_missing`` a value
    that only a running shell could know stays in the words, and the answer lists it.

    Raises:
        InvalidLaunch: a quote does not close, or a value is missing and ``keep_missing`` is not set.
    """
    outside = dict(environment or {})
    for words, seen in statements(script, outside, field=field, positional=positional):
        parsed = _launch(words, seen, field, keep_missing)
        if parsed is not None:
            assigned = {name: value for name, value in seen.items() if outside.get(name) != value}
            return replace(parsed, environment={**assigned, **parsed.environment})
    return None


def find_words(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    field: str = FIELD,
    keep_missing: bool = False,
) -> ParsedCommand | None:
    """The launch in a command that is a list of words already, as a container has it; else as :func:`find_command`."""
    return _launch([Word(text=word, assigns=False) for word in words], dict(environment or {}), field, keep_missing)


def _launch(
    words: Sequence[Word], environment: Mapping[str, str], field: str, keep_missing: bool
) -> ParsedCommand | None:
    assigned: dict[str, str] = {}
    index = 0
    behind_env = False
    while index < len(words):
        word = words[index]
        if word.assigns or (behind_env and "=" in word.text and not word.text.startswith("-")):
            name, value = word.text.split("=", 1)
            if word.missing is None:
                assigned[name] = value
        elif word.text.rsplit("/", 1)[-1] in _WRAPPERS:
            behind_env = behind_env or word.text.rsplit("/", 1)[-1] == "env"
        else:
            break
        index += 1
    rest = words[index:]
    if rest and _SHELL.match(rest[0].text):
        return _inside_shell(rest, {**environment, **assigned}, assigned, field, keep_missing)
    if rest and _starts_another(rest[0].text):
        inner = next((at for at in range(1, len(rest)) if _starts_engine(rest[at:])), None)
        return None if inner is None else _with(assigned, _launch(rest[inner:], environment, field, keep_missing))
    arguments = _after_program(rest)
    if arguments is None:
        return None
    missing = tuple(word.missing for word in arguments if word.missing is not None)
    for word in arguments:
        if word.missing is not None and not keep_missing:
            raise InvalidLaunch(
                f"The command holds {word.missing}, whose value is not known here.",
                remedy="Write its value instead, or give it in the environment.",
                field=field,
            )
    texts = [word.text for word in arguments]
    model = None
    if texts and not texts[0].startswith("-"):
        model, texts = texts[0], texts[1:]
    return ParsedCommand(environment=assigned, arguments=tuple(texts), model=model, missing=missing)


def _with(assigned: Mapping[str, str], found: ParsedCommand | None) -> ParsedCommand | None:
    return None if found is None else replace(found, environment={**assigned, **found.environment})


def _starts_another(program: str) -> bool:
    name = program.rsplit("/", 1)[-1]
    return name in _STARTERS or name.endswith(".sh")


def _starts_engine(words: Sequence[Word]) -> bool:
    name = words[0].text
    return name.rsplit("/", 1)[-1] == "env" or _SHELL.match(name) is not None or _after_program(words) is not None


def _inside_shell(
    words: Sequence[Word],
    environment: Mapping[str, str],
    assigned: Mapping[str, str],
    field: str,
    keep_missing: bool,
) -> ParsedCommand | None:
    for index, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word.text) and index + 1 < len(words):
            behind = [one.text for one in words[index + 2 :]]
            script = words[index + 1].text
            found = find_command(script, environment, field=field, positional=behind, keep_missing=keep_missing)
            return _with(assigned, found)
        if not word.text.startswith("-"):  # a script's file, with what it may run behind it
            inner = next((at for at in range(index, len(words)) if _after_program(words[at:]) is not None), None)
            return None if inner is None else _with(assigned, _launch(words[inner:], environment, field, keep_missing))
    return None


def _after_program(words: Sequence[Word]) -> Sequence[Word] | None:
    if not words:
        return None
    if words[0].text.rsplit("/", 1)[-1] == "sglang" and len(words) > 1 and words[1].text == "serve":
        return words[2:]
    if not _PYTHON.match(words[0].text):
        return None
    for index, word in enumerate(words[1:], 1):
        if word.text == "-m" and index + 1 < len(words):
            return words[index + 2 :] if words[index + 1].text in _MODULES else None
        if not word.text.startswith("-"):
            return None
    return None
