"""Options in an argument list, found by their exact names, before any release's parser has seen them."""

from __future__ import annotations

from collections.abc import Sequence


def option_named(arguments: Sequence[str], option: str) -> bool:
    """Whether the list holds ``option`` or ``option=value``."""
    if option in arguments:
        return True
    inline = option + "="
    for word in arguments:  # noqa: SIM110 - every launch comes by several times, and any() takes twice as long
        if word.startswith(inline):
            return True
    return False


def option_value(arguments: Sequence[str], option: str) -> str | None:
    """The value of the last occurrence of a one-value option; None where it is absent or has none."""
    value = None
    for index, word in enumerate(arguments):
        if word.startswith(option + "="):
            value = word[len(option) + 1 :]
        elif word == option and index + 1 < len(arguments):
            value = arguments[index + 1]
    return value


def without_option(arguments: Sequence[str], option: str) -> tuple[str, ...]:
    """The list without any occurrence of a one-value option."""
    if not option_named(arguments, option):
        return tuple(arguments)
    out: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word == option:
            skip = True
        elif not word.startswith(option + "="):
            out.append(word)
    return tuple(out)
