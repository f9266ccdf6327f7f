"""A shell script's words, statement by statement, without running anything.

What a POSIX shell does with quotes, backslashes, comments, line continuations, redirections, ``$NAME``, ``${NAME}`` and
``${NAME:-word}`` is done here over a given environment; assignments of earlier statements count. What only a running
shell could know (a substitution, a variable without a value) stays in the word as a mark, so that the caller can say
which value is missing, and only where it matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.errors import InvalidLaunch

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])((?:[^{}]|\{[^{}]*\})*))?\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SEPARATORS = ("&&", "||", ";", "|", "&", "\n", "(", ")")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<<<|<<|<&|<>|>|<)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word. ``missing`` is what only a running shell could put in; ``assigns`` whether it is ``NAME=value``."""

    text: str
    missing: str | None = None
    assigns: bool = False


def statements(
    script: str, environment: Mapping[str, str], *, field: str
) -> Iterator[tuple[list[Word], dict[str, str]]]:
    """Each simple command of the script, with the environment that it would see.

    Raises:
        InvalidLaunch: a quote does not close.
    """
    seen = dict(environment)
    for words in _Reader(script, seen, field).commands():
        command = [word for word in words if not (word.text == "export" and not word.missing)]
        if command and all(word.assigns for word in command):
            for word in command:
                name, value = word.text.split("=", 1)
                if word.missing is None:
                    seen[name] = value
            continue
        if command:
            yield words, seen


class _Reader:
    """One pass over a script; ``environment`` may change between two commands."""

    def __init__(self, script: str, environment: Mapping[str, str], field: str) -> None:
        self.script = script
        self.environment = environment
        self.field = field
        self.at = 0

    def commands(self) -> Iterator[list[Word]]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= len(self.script):
                break
            if self._skip_redirection():
                continue
            separator = next((s for s in _SEPARATORS if self.script.startswith(s, self.at)), None)
            if separator is not None:
                self.at += len(separator)
                if words:
                    yield words
                words = []
                continue
            words.append(self._word())
        if words:
            yield words

    def _skip_blanks(self) -> None:
        while self.at < len(self.script):
            if self.script.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.script.index("\n", self.at) + 1
            elif self.script[self.at] in " \t\r":
                self.at += 1
            elif self.script[self.at] == "#":
                end = self.script.find("\n", self.at)
                self.at = len(self.script) if end < 0 else end
            else:
                return

    def _skip_redirection(self) -> bool:
        found = _REDIRECTION.match(self.script, self.at)
        if found is None:
            return False
        self.at = found.end()
        self._skip_blanks()
        if self.at < len(self.script) and self.script[self.at] not in ";|&\n":
            self._word()
        return True

    def _word(self) -> Word:
        parts: list[str] = []
        missing: str | None = None
        bare = self.script[self.at]
        while self.at < len(self.script):
            char = self.script[self.at]
            if char in " \t\r\n;|&()<>":
                break
            if char == "'":
                parts.append(self._until("'"))
            elif char == '"':
                lack = self._double_quoted(parts)
                missing = missing or lack
            elif char == "\\":
                self._escaped(parts, doubled=False)
            elif char in "$`":
                lack = self._expansion(parts)
                missing = missing or lack
            else:
                parts.append(char)
                self.at += 1
        text = "".join(parts)
        return Word(text=text, missing=missing, assigns=bare not in "'\"" and _ASSIGNMENT.fullmatch(text) is not None)

    def _until(self, quote: str) -> str:
        end = self.script.find(quote, self.at + 1)
        if end < 0:
            raise self._unclosed(quote)
        text = self.script[self.at + 1 : end]
        self.at = end + 1
        return text

    def _unclosed(self, quote: str) -> InvalidLaunch:
        return InvalidLaunch(
            f"The line is not a shell command: a {quote} is opened and never closed.",
            remedy="Close every quote; put JSON into single quotes.",
            field=self.field,
        )

    def _double_quoted(self, parts: list[str]) -> str | None:
        self.at += 1
        missing: str | None = None
        while self.at < len(self.script):
            char = self.script[self.at]
            if char == '"':
                self.at += 1
                return missing
            if char == "\\":
                self._escaped(parts, doubled=True)
            elif char in "$`":
                lack = self._expansion(parts)
                missing = missing or lack
            else:
                parts.append(char)
                self.at += 1
        raise self._unclosed('"')

    def _escaped(self, parts: list[str], *, doubled: bool) -> None:
        following = self.script[self.at + 1 : self.at + 2]
        if following and following != "\n":
            parts.append(following if not doubled or following in '$`"\\' else "\\" + following)
        self.at += 2

    def _expansion(self, parts: list[str]) -> str | None:
        """Put a variable's value in; the text of what is missing where it has none."""
        if self.script.startswith("$(", self.at) or self.script[self.at] == "`":
            closing = ")" if self.script[self.at] == "$" else "`"
            end = self.script.find(closing, self.at + 1)
            shown = self.script[self.at : end + 1 if end >= 0 else None]
            self.at += len(shown)
            return shown
        braced = _BRACED.match(self.script, self.at + 1)
        name = None if braced else _NAME.match(self.script, self.at + 1)
        if braced is None and name is None:
            parts.append("$")
            self.at += 1
            return None
        found = (braced or name).group(1 if braced else 0)  # type: ignore[union-attr]  # one of the two matched
        shown = self.script[self.at : (braced or name).end()]  # type: ignore[union-attr]  # one of the two matched
        self.at += len(shown)
        value = self.environment.get(found)
        if braced is not None and braced.group(2) and (value is None or (value == "" and ":" in braced.group(2))):
            value = braced.group(3).strip("\"'")
        if value is None:
            return shown
        parts.append(value)
        return None
