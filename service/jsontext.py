"""JSON as this service writes it (valid RFC 8259 whatever it is given) and reads it (strictly)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

_UNUSUAL = re.compile(rb"NaN|Infinity|[0-9][eE]\+?[0-9]{3}|[0-9]{200}")
"""Without one of these every number is finite: below 1e200 times 1e99."""


class JsonError(ValueError):
    """A text that is not taken as JSON; the message is a sentence for its sender."""


class JsonTooComplex(JsonError):
    """JSON beyond the limits of depth or number of items."""


def dumps(value: Any) -> bytes:
    """UTF-8 JSON. Infinity and NaN, which JSON does not have, become the texts "Infinity", "-Infinity" and "NaN"."""
    try:
        return to_json(value, inf_nan_mode="strings")
    except (ValueError, UnicodeError):  # half of a surrogate pair somewhere
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value] # add() answers None: the first repeated name is wanted
        raise JsonError(f"The name {shown(twice)} stands twice in one object. Keep one of them.")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def loads(data: bytes, *, depth: int, items: int, loose: tuple[tuple[str, ...], ...] = ()) -> Any:
    """The value of a JSON text, each name once in its object, at most ``depth`` levels and ``items`` values.

    NaN, Infinity and numbers too large to be finite are taken below the paths of ``loose`` alone.

    Raises:
        JsonError: with a sentence that says what is wrong and where.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"The body is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}.") from None
    try:
        value = _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise JsonTooComplex(f"The JSON is nested too deep; the limit is {depth} levels.") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}.") from None
    except JsonError:
        raise
    except ValueError:  # an integer of more digits than Python converts
        raise JsonError("The JSON holds a number of more than 4300 digits.") from None
    surrogates = b"\\u" in data
    if surrogates or len(data) > items or data.count(b"{") + data.count(b"[") > depth or _UNUSUAL.search(data):
        _check(value, depth=depth, items=items, loose=loose, surrogates=surrogates)
    return value


def _check(value: Any, *, depth: int, items: int, loose: tuple[tuple[str, ...], ...], surrogates: bool) -> None:
    """One walk, without recursion, that counts and looks at what Python's reader lets pass."""
    stack: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    count = 0
    while stack:
        current, path = stack.pop()
        if len(path) > depth:
            raise JsonTooComplex(f"The JSON is nested too deep; the limit is {depth} levels.")
        children: list[tuple[str, Any]] = []
        if isinstance(current, dict):
            children = list(current.items())
        elif isinstance(current, list):
            children = [(str(index), item) for index, item in enumerate(current)]
        count += 1
        if count + len(stack) + len(children) > items:
            raise JsonTooComplex(f"The JSON holds more than {items} items.")
        for name, item in children:
            if surrogates and (_lone_surrogate(name) or (isinstance(item, str) and _lone_surrogate(item))):
                where = ".".join((*path, shown(name)))
                raise JsonError(f"The text at {where} holds half of a surrogate pair (\\ud800 to \\udfff).")
            if isinstance(item, float) and not math.isfinite(item):
                here = (*path, name)
                if not any(here[: len(free)] == free for free in loose):
                    raise JsonError(
                        f"The value at {'.'.join(here)} is not a finite number; JSON has no NaN and no Infinity."
                    )
            elif isinstance(item, (dict, list)):
                stack.append((item, (*path, name)))
            else:
                count += 1


def _lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def shown(text: str, limit: int = 60) -> str:
    """The text quoted for a message: cut to ``limit`` characters, control characters escaped."""
    cut = text if len(text) <= limit else text[:limit] + "..."
    return ascii(cut) if not cut.isprintable() else repr(cut)
