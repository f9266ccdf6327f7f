"""A shell script's words, statement by statement, without running anything.

What a POSIX shell does with quotes, backslashes, comments, line continuations, redirections, ``$NAME``, ``${NAME}``,
``${NAME:-word}`` and the positional parameters is done here over a given environment, the splitting of unquoted values
into words included; assignments of earlier statements count. What only a running shell could know (a substitution, a
variable without a value) stays in the word as it was written, and the word says so, so that the caller can say which
value is missing, and only where it matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import InvalidLaunch

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])((?:[^{}]|\{[^{}]*\})*))?\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SEPARATORS = ("&&", "||", ";", "|", "&", "\n", "(", ")")
_POSITIONAL = re.compile(r"([@*0-9#])|\{([@*0-9#])\}")
_SPLIT = str.maketrans({" ": "\ue000", "\t": "\ue001", "\n": "\ue002"})
"""Blanks of an unquoted value, which split it into words, while they are told from quoted blanks."""
_WHOLE = str.maketrans({"\ue000": " ", "\ue001": "\t", "\ue002": "\n"})
_FIELDS = re.compile("[\ue000-\ue002]+")
_NEXT = "\ue003"
"""Between the words of ``"$@"``."""
_DECLARING = frozenset({"export", "local", "declare", "readonly"})
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<<<|<<|<&|<>|>|<)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word. ``missing`` is what only a running shell could put in, as it stands in ``text``; ``assigns`` whether it
    is ``NAME=value``."""

    text: str
    missing: str | None = None
    assigns: bool = False


def statements(
    script: str, environment: Mapping[str, str], *, field: str, positional: Sequence[str] | None = None
) -> Iterator[tuple[list[Word], dict[str, str]]]:
    """Each simple command of the script, with the environment that it would see.

    ``positional`` are the words behind ``sh -c SCRIPT``: the first is ``$0``; None where they are not known.

    Raises:
        InvalidLaunch: a quote does not close.
    """
    seen = dict(environment)
    reader = _Reader(script, seen, field, positional)
    for words in reader.commands():
        if words[0].text in ("set", "shift"):
            reader.positional = _set(words, reader.positional)
        command = [word for word in words if not (word.text == "export" and not word.missing)]
        if command and all(word.assigns for word in command):
            for word in command:
                name, value = word.text.split("=", 1)
                if word.missing is None:
                    seen[name] = value
                else:
                    seen.pop(name, None)
            continue
        if command:
            yield words, seen


def _set(words: Sequence[Word], before: Sequence[str] | None) -> Sequence[str] | None:
    """The positional parameters after ``set -- WORD ...`` or ``shift``."""
    texts = [word.text for word in words]
    if texts[0] == "shift":
        count = int(texts[1]) if len(texts) > 1 and texts[1].isdecimal() else 1
        return None if before is None else (*before[:1], *before[1 + count :])
    if "--" not in texts:
        return before
    given = words[texts.index("--") + 1 :]
    return None if any(word.missing for word in given) else ("sh", *(word.text for word in given))


class _Reader:
    """One pass over a script; ``environment`` may change between two commands."""

    def __init__(
        self, script: str, environment: Mapping[str, str], field: str, positional: Sequence[str] | None
    ) -> None:
        self.script = script
        self.positional = positional
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
            words.extend(self._words(leading=all(word.assigns or word.text in _DECLARING for word in words)))
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
            list(self._words(leading=False))
        return True

    def _words(self, *, leading: bool) -> Iterator[Word]:
        """The word that begins here; none or several where unquoted values are empty or hold blanks. Only a leading one
        assigns."""
        parts: list[str] = []
        missing: str | None = None
        begun = self.at
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
                lack = self._expansion(parts, quoted=False)
                missing = missing or lack
            else:
                parts.append(char)
                self.at += 1
        text = "".join(parts)
        whole = text.translate(_WHOLE)
        if leading and bare not in "'\"$`" and _ASSIGNMENT.fullmatch(whole.replace(_NEXT, " ")):
            yield Word(text=whole.replace(_NEXT, " "), missing=missing, assigns=True)
            return
        source = self.script[begun : self.at]
        if not text and ("'" in source or '"' in source) and "$@" not in source:
            yield Word(text="", missing=missing)
        pieces = text.split(_NEXT)
        for piece in pieces:
            for field in _FIELDS.split(piece) if piece or len(pieces) == 1 else [None]:
                if field or field is None:
                    yield Word(text=field or "", missing=missing)

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
                lack = self._expansion(parts, quoted=True)
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

    def _expansion(self, parts: list[str], *, quoted: bool) -> str | None:
        """Put a value in; where it is not known, the text as it stands, which is the answer then."""
        if self.script.startswith("$(", self.at) or self.script[self.at] == "`":
            shown = self._substitution()
            parts.append(shown)
            return shown
        positional = _POSITIONAL.match(self.script, self.at + 1)
        if positional is not None:
            return self._positional(parts, positional, quoted=quoted)
        braced = _BRACED.match(self.script, self.at + 1)
        named = braced or _NAME.match(self.script, self.at + 1)
        if named is None:
            return self._other(parts, quoted=quoted)
        shown = self.script[self.at : named.end()]
        self.at = named.end()
        known = self.environment.get(named.group(1 if braced else 0))
        if braced is not None and braced.group(2) and (known is None or (known == "" and ":" in braced.group(2))):
            known = self._default(braced.group(3))
        if known is None:
            parts.append(shown)
            return shown
        parts.append(known if quoted else known.translate(_SPLIT))
        return None

    def _default(self, text: str) -> str | None:
        """The word behind ``:-``, with its own expansions; None where one of them is not known."""
        inner = _Reader(text, self.environment, self.field, self.positional)
        parts: list[str] = []
        while inner.at < len(text):
            char = text[inner.at]
            if char in "$`":
                if inner._expansion(parts, quoted=True) is not None:
                    return None
            else:
                parts.append(char if char not in "\"'" else "")
                inner.at += 1
        return "".join(parts)

    def _substitution(self) -> str:
        """``$(command)`` or the same in backticks, up to its end."""
        start, depth = self.at, 0
        if self.script[start] == "`":
            end = self.script.find("`", start + 1)
            self.at = len(self.script) if end < 0 else end + 1
            return self.script[start : self.at]
        for index in range(start + 1, len(self.script)):
            depth += {"(": 1, ")": -1}.get(self.script[index], 0)
            if depth == 0:
                self.at = index + 1
                return self.script[start : self.at]
        self.at = len(self.script)
        return self.script[start:]

    def _positional(self, parts: list[str], match: re.Match[str], *, quoted: bool) -> str | None:
        self.at = match.end()
        if self.positional is None:
            parts.append(match.string[match.start() - 1 : match.end()])
            return parts[-1]
        given, name = self.positional[1:], match.group(1) or match.group(2)
        value = {"@": (_NEXT if quoted else " ").join(given), "*": " ".join(given), "#": str(len(given))}.get(name)
        if value is None:
            index = int(name)
            value = self.positional[index] if index < len(self.positional) else ""
        parts.append(value if quoted else value.translate(_SPLIT))
        return None

    def _other(self, parts: list[str], *, quoted: bool) -> str | None:
        """A dollar sign before something else: an expansion that only a shell can do, or itself."""
        following = self.script[self.at + 1 : self.at + 2]
        end = self.at + 1
        if following == "{":
            end = self.script.find("}", self.at) + 1 or len(self.script)
        elif following == "'" and not quoted:
            end = self.script.find("'", self.at + 2) + 1 or len(self.script)
        elif following and following in "$?!-":
            end = self.at + 2
        shown = self.script[self.at : end]
        self.at = end
        parts.append(shown)
        return shown if len(shown) > 1 else None
