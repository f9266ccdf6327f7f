"""The engine's environment variables: typed reading with the release's defaults, and what a step sets for later steps.

The table (name, kind, default, old name) is the release's; source: SGLang ``srt/environ.py``. A value that cannot be
read counts as not set, as in the engine.

Variables that the engine reads while its modules are imported (0.5.23) are no part of a resolution. They say what is
installed or which hardware there is (``SGLANG_IS_FLASHINFER_AVAILABLE``, ``SGLANG_USE_CPU_ENGINE``,
``SGLANG_USE_AITER``) or where models come from (``SGLANG_USE_MODELSCOPE``), and are taken as they are on a CUDA node
with the engine's own image. One of them changes how a model is read and is followed: ``SGLANG_EXTERNAL_MM_MODEL_ARCH``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, cast

from engine.sglang.resolution import Resolution

_TRUE = frozenset({"true", "1", "yes", "y"})
_FALSE = frozenset({"false", "0", "no", "n"})


def read(r: Resolution, name: str) -> Any:
    """The variable's value as the engine reads it, or the release's default.

    A variable that came after the release has no effect there: it reads as its later default, whatever it is set to.

    Raises:
        KeyError: neither the release nor the newest one declares such a variable (a mistake in a step).
    """
    row = r.release.tables["environment"].get(name)
    if row is None:
        return r.release.absent_environment[name]
    text = r.environment.get(name)
    if text is None and "alias" in row:
        text = r.environment.get(row["alias"])
    if text is None:
        return row["default"]
    try:
        return _READERS[row["kind"].removesuffix("WithAlias")](text)
    except ValueError:
        return row["default"]


def whole_number(r: Resolution, name: str) -> int | None:
    """A variable that the release reads as a whole number without declaring it; None where it holds none."""
    try:
        return int(r.environment.get(name, ""))
    except ValueError:
        return None


def known(r: Resolution, name: str) -> bool:
    """Whether the release declares the variable."""
    return name in r.release.tables["environment"]


def choices(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The choices of options, by destination, that the environment adds while the parser is built."""
    try:
        oracle = as_bool(environment.get("SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE", "0"))
    except ValueError:
        oracle = False
    return {"sampling_backend": ("token_oracle",)} if oracle else {}


def is_set(r: Resolution, name: str) -> bool:
    """Whether the variable is in the environment, whatever its value."""
    return name in r.environment


def put(r: Resolution, name: str, value: Any) -> None:
    """Set the variable for the steps that follow, as the engine writes into its own environment."""
    cast("MutableMapping[str, str]", r.environment)[name] = str(value)


def as_bool(text: str) -> bool:
    """True or false in the engine's spellings.

    Raises:
        ValueError: neither.
    """
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(text)


def _json(text: str) -> Any:
    # The engine also takes the path of a JSON file here; no file of the operator's machine is read.
    return json.loads(text) if text else None


_READERS: dict[str, Callable[[str], Any]] = {
    "EnvStr": str,
    "EnvBool": as_bool,
    "EnvInt": int,
    "EnvFloat": float,
    "EnvTuple": lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
    "EnvJSON": _json,
}
