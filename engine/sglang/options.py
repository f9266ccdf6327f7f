"""A command line, parsed as the engine's own parser (Python 3.11's argparse over that release's options) parses it.

The table is built once a release; parsing a launch touches only the words of the launch. What argparse does is kept
whole: abbreviations and ambiguity, ``--opt=value``, numbers that look like options, ``--``, nargs, choices, and which
of several errors is reported.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

from engine.sglang.argument_types import TYPES, BadValue
from engine.sglang.graph_config import GraphLanguage, parse_backend, parse_config
from engine.sglang.resolution import Refusal

_NEGATIVE_NUMBER = re.compile(r"^-\d+$|^-\d*\.\d+$")
_PROGRAM = "sglang serve"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """One option of a release. ``nargs`` None: one value; 0: a switch; ``?``, ``*``, ``+`` as argparse has them.

    ``convert`` turns one word into a value; ``type`` is its name as argparse prints it. ``const`` is what a bare
    ``?``-option or a switch stores.
    """

    strings: tuple[str, ...]
    dest: str
    action: str
    nargs: int | str | None
    const: Any
    type: str
    convert: Callable[[str], Any]
    choices: tuple[Any, ...] | None
    new_flag: str | None
    error_message: str | None

    @property
    def label(self) -> str:
        """The name that argparse gives the option in its messages."""
        return "/".join(self.strings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a command line sets: ``values`` by destination, the names ``given``, and the warnings of retired flags."""

    values: Mapping[str, Any]
    given: frozenset[str]
    warnings: tuple[str, ...]


_Found = tuple[Option | None, str, str | None]


class CommandLine:
    """The options of one release."""

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = tuple(options)
        self.by_string: dict[str, Option] = {string: o for o in self.options for string in o.strings}
        self._place = {string: place for place, string in enumerate(self.by_string)}
        self._sorted = sorted(self.by_string)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], language: GraphLanguage) -> CommandLine:
        """From the rows of ``options.json``."""
        types: dict[str, Callable[[str], Any]] = {
            **TYPES,
            "parse_cuda_graph_config_arg": lambda text: parse_config(text, language),
            "parse_cuda_graph_backend_arg": lambda text: parse_backend(text, language),
        }
        return cls(
            Option(
                strings=tuple(row["strings"]),
                dest=row["dest"],
                action=row["action"],
                nargs=row.get("nargs"),
                const=row.get("const_value", row.get("const")),
                type=row.get("type", "str").removeprefix("json."),
                convert=types[row.get("type", "str")],
                choices=tuple(row["choices"]) if "choices" in row else None,
                new_flag=row.get("new_flag"),
                error_message=row.get("error_message"),
            )
            for row in rows
        )

    def beginning_with(self, head: str) -> list[str]:
        """The option strings that begin with ``head``, in the order of the options."""
        start = end = bisect.bisect_left(self._sorted, head)
        while end < len(self._sorted) and self._sorted[end].startswith(head):
            end += 1
        return sorted(self._sorted[start:end], key=self._place.__getitem__)

    def parse(self, words: Sequence[str], more: Mapping[str, tuple[Any, ...]] = MappingProxyType({})) -> Parsed:
        """The command line's values. ``more`` are choices by destination that the environment adds.

        Raises:
            Refusal: stage "parse", with the parser's message; stage "resolve" where the engine's own action raises.
        """
        return _Reading(self, words, more).run()


class _Reading:
    """One pass over one command line."""

    def __init__(self, table: CommandLine, words: Sequence[str], more: Mapping[str, tuple[Any, ...]]) -> None:
        self.table = table
        self.more = more
        self.words = list(words)
        self.values: dict[str, Any] = {}
        self.warnings: list[str] = []

    def run(self) -> Parsed:
        found, pattern = self._classify()
        extras: list[str] = []
        at = 0
        for index in found:
            if index < at:  # cannot happen: a value is never an option
                continue
            extras.extend(self.words[at:index])
            at = self._consume(found[index], index, pattern, extras)
        extras.extend(self.words[at:])
        if extras:
            self._error(f"unrecognized arguments: {' '.join(extras)}")
        return Parsed(values=self.values, given=frozenset(self.values), warnings=tuple(self.warnings))

    def _classify(self) -> tuple[dict[int, _Found], str]:
        """Which words are options, and the pattern of the line: O option, A argument, ``-`` the double hyphen."""
        found: dict[int, _Found] = {}
        pattern: list[str] = []
        by_string = self.table.by_string
        for index, word in enumerate(self.words):
            if word == "--":
                pattern.append("-" + "A" * (len(self.words) - index - 1))
                break
            written = by_string.get(word)
            option = self._option(word) if written is None else (written, word, None)
            if option is None:
                pattern.append("A")
            else:
                found[index] = option
                pattern.append("O")
        return found, "".join(pattern)

    def _option(self, word: str) -> _Found | None:
        if not word or word[0] != "-":
            return None
        if len(word) == 1:
            return None
        by_string = self.table.by_string
        head, equals, tail = word.partition("=")
        if equals and head in by_string:
            return by_string[head], head, tail
        candidates = self._abbreviated(word)
        if len(candidates) > 1:
            matches = ", ".join(string for _, string, _ in candidates)
            self._error(f"ambiguous option: {word} could match {matches}")
        if candidates:
            return candidates[0]
        if _NEGATIVE_NUMBER.match(word) or " " in word:
            return None
        return None, word, None

    def _abbreviated(self, word: str) -> list[_Found]:
        by_string = self.table.by_string
        if word[1] == "-":
            head, equals, tail = word.partition("=")
            return [(by_string[s], s, tail if equals else None) for s in self.table.beginning_with(head)]
        out: list[_Found] = []
        for string, option in by_string.items():
            if string == word[:2]:
                out.append((option, string, word[2:]))
            elif string.startswith(word):
                out.append((option, string, None))
        return out

    def _consume(self, found: _Found, index: int, pattern: str, extras: list[str]) -> int:
        option, string, explicit = found
        if option is None:
            extras.append(self.words[index])
            return index + 1
        if explicit is not None:
            if self._count(option, "A") != 1:
                if option.nargs == 0 and string[1] != "-" and explicit != "":
                    self._take(option, [], string)  # -h followed by more letters: help comes first
                self._refuse(option, f"ignored explicit argument {explicit!r}")
            self._take(option, [explicit], string)
            return index + 1
        if option.nargs is None and pattern.startswith("A", index + 1) and option.action not in _ACTIONS:
            value = self._value(option, self.words[index + 1])  # nearly every option
            self._check(option, value)
            self.values[option.dest] = value
            return index + 2
        stop = index + 1 + self._count(option, pattern[index + 1 :])
        self._take(option, self.words[index + 1 : stop], string)
        return stop

    def _count(self, option: Option, pattern: str) -> int:
        """How many of the following words belong to the option."""
        available = len(pattern) - len(pattern.lstrip("A"))
        if option.nargs is None:
            if not available:
                self._refuse(option, "expected one argument")
            return 1
        if option.nargs == "+":
            if not available:
                self._refuse(option, "expected at least one argument")
            return available
        if option.nargs == "*":
            return available
        return min(available, 1) if option.nargs == "?" else 0

    def _take(self, option: Option, words: list[str], string: str) -> None:
        action = _ACTIONS.get(option.action)
        value = self._values(option, words)
        if action is None:
            self.values[option.dest] = value
        else:
            action(self, option, value, string)

    def _values(self, option: Option, words: list[str]) -> Any:
        words = _without_first_double_hyphen(words)
        if option.nargs == "?" and not words:
            value = option.const
            if isinstance(value, str):
                value = self._value(option, value)
                self._check(option, value)
            return value
        if option.nargs in (None, "?") and len(words) == 1:
            value = self._value(option, words[0])
            self._check(option, value)
            return value
        values = [self._value(option, word) for word in words]
        for value in values:
            self._check(option, value)
        return values

    def _value(self, option: Option, word: str) -> Any:
        try:
            return option.convert(word)
        except BadValue as error:
            self._refuse(option, str(error))
        except (TypeError, ValueError):
            self._refuse(option, f"invalid {option.type} value: {word!r}")

    def _check(self, option: Option, value: Any) -> None:
        if option.choices is None or value in option.choices:
            return
        choices = (*option.choices, *self.more.get(option.dest, ()))
        if value not in choices:
            self._refuse(option, f"invalid choice: {value!r} (choose from {', '.join(map(repr, choices))})")

    def _refuse(self, option: Option, message: str) -> NoReturn:
        self._error(f"argument {option.label}: {message}")

    def _error(self, message: str) -> NoReturn:
        raise Refusal("ArgumentError", f"{_PROGRAM}: error: {message}", "parse")

    # The actions, by their class names in the engine.

    def _store_true(self, option: Option, _value: Any, _string: str) -> None:
        self.values[option.dest] = True

    def _boolean(self, option: Option, _value: Any, string: str) -> None:
        self.values[option.dest] = not string.startswith("--no-")

    def _help(self, _option: Option, _value: Any, _string: str) -> None:
        # The engine prints its help and ends: nothing is launched, and nothing stands on standard error.
        raise Refusal("ArgumentError", "", "parse")

    def _lora_paths(self, option: Option, value: list[str], _string: str) -> None:
        paths: list[Any] = []
        for path in value:
            word = path.strip()
            if not (word.startswith("{") and word.endswith("}")):
                paths.append(word)
                continue
            try:
                entry = json.loads(word)
            except json.JSONDecodeError as error:
                raise Refusal("JSONDecodeError", str(error)) from None
            if "lora_path" not in entry or "lora_name" not in entry:
                raise Refusal(
                    "AssertionError",
                    f"{word!r} looks like a JSON str, but it does not contain 'lora_name' and 'lora_path' keys.",
                )
            paths.append(entry)
        self.values[option.dest] = paths

    def _retired_switch(self, option: Option, _value: Any, string: str) -> None:
        self._warn_retired(option, string)
        self.values[option.dest] = True

    def _retired_constant(self, option: Option, _value: Any, string: str) -> None:
        self._warn_retired(option, string)
        self.values[option.dest] = option.const

    def _retired_alias(self, option: Option, value: Any, string: str) -> None:
        self._warn_retired(option, string)
        self.values[option.dest] = value

    def _retired(self, option: Option, _value: Any, string: str) -> None:
        if option.error_message is not None:
            self._error(option.error_message)
        self.warnings.append(
            f"WARNING: The command line argument '{string}' is deprecated and will be removed in future versions."
        )

    def _warn_retired(self, option: Option, string: str) -> None:
        instead = f" Use '{option.new_flag}' instead." if option.new_flag else ""
        self.warnings.append(f"WARNING: '{string}' is deprecated and will be removed in a future release.{instead}")


_ACTIONS: Mapping[str, Callable[[_Reading, Option, Any, str], None]] = {
    "StoreTrueAction": _Reading._store_true,
    "BooleanOptionalAction": _Reading._boolean,
    "HelpAction": _Reading._help,
    "LoRAPathAction": _Reading._lora_paths,
    "DeprecatedStoreTrueAction": _Reading._retired_switch,
    "DeprecatedStoreConstAction": _Reading._retired_constant,
    "DeprecatedAliasStoreAction": _Reading._retired_alias,
    "DeprecatedAction": _Reading._retired,
}


def _without_first_double_hyphen(words: list[str]) -> list[str]:
    if "--" not in words:
        return words
    at = words.index("--")
    return words[:at] + words[at + 1 :]
