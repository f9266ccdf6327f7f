"""The bytes of a config.json become a dictionary, or an error that says where and why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.errors import ConfigTooLarge, ConfigUnreadable

MAX_CONFIG_BYTES = 4 * 1024 * 1024
"""The largest config.json that is read by default. The largest published ones (long lists of modules that were not
quantized) are below 1 MiB."""

MAX_DEPTH = 32
"""The deepest nesting of objects and lists. Real configurations stay below 8."""

_REMEDY = "Give the model's own config.json, unchanged."


def read_config(text: bytes | str, *, limit: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """The parsed config.json.

    Bare ``Infinity``, ``-Infinity`` and ``NaN`` are taken, as published files hold them (``time_step_limit`` of
    Nemotron-H). A key that stands twice in one object is refused: which of the two holds would be a guess.

    Raises:
        ConfigTooLarge: more than ``limit`` bytes.
        ConfigUnreadable: not UTF-8, not JSON, nested too deep, a key given twice, or not an object.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise too_large(size, limit)
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigUnreadable(
                f"The config is not UTF-8 text: byte {error.start} cannot be decoded.", remedy=_REMEDY
            ) from None
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ConfigUnreadable(
            f"The config is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.", remedy=_REMEDY
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # an integer with more digits than Python converts
        raise ConfigUnreadable(f"The config is not usable JSON: {error}.", remedy=_REMEDY) from None
    if not isinstance(value, dict):
        raise ConfigUnreadable(f"The config is a JSON {_kind(value)}, not an object.", remedy=_REMEDY)
    check_depth(value)
    return value


def check_depth(config: Mapping[str, Any]) -> None:
    """Refuse a parsed config that is nested too deep, or whose keys are no strings.

    Raises:
        ConfigUnreadable: so.
    """
    level: list[Any] = [config]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                if not all(isinstance(key, str) for key in value):
                    raise ConfigUnreadable("The config has a key that is not a string.", remedy=_REMEDY)
                below.extend(v for v in value.values() if isinstance(v, (Mapping, list, tuple)))
            else:
                below.extend(v for v in value if isinstance(v, (Mapping, list, tuple)))
        if not below:
            return
        level = below
    raise _too_deep()


def too_large(size: int | None, limit: int) -> ConfigTooLarge:
    """The error for a config of ``size`` bytes (None: it was cut off) over the ``limit``."""
    said = "more than the limit" if size is None else f"{size:,} bytes"
    return ConfigTooLarge(
        f"The config.json has {said}; the limit is {limit:,} bytes.",
        remedy="Check that it is a model's config.json, or raise GRAPHGATE_MAX_CONFIG_BYTES.",
    )


def _too_deep() -> ConfigUnreadable:
    return ConfigUnreadable(f"The config is nested deeper than {MAX_DEPTH} levels.", remedy=_REMEDY)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ConfigUnreadable(
                    f"The key {key[:80]!r} stands twice in one object of the config.",
                    remedy="Remove one of the two.",
                    field=key[:80],
                )
            seen.add(key)
    return made


def _kind(value: Any) -> str:
    return {list: "list", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
