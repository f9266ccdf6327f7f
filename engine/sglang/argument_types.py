"""The functions by which the engine's parser turns one word of the command line into a value.

One function a name, as ``scripts/extract_release.py`` writes the name (those of the graph language are in
``graph_config.py``). A :class:`BadValue` is the engine's own wording; a
TypeError or ValueError becomes argparse's "invalid TYPE value".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any


class BadValue(Exception):
    """A value that the engine's type function refuses in its own words."""


_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")


def human_readable_int(text: str) -> int:
    """An integer, with SI (k, M, G, T; decimals allowed) or IEC (Ki, Mi, Gi, Ti) suffixes."""
    text = text.strip()
    found = _SUFFIXED.fullmatch(text)
    if found is None:
        try:
            return int(text)
        except ValueError:
            raise BadValue(
                f"Invalid integer value: '{text}'. "
                "Use a plain integer, SI suffixes (1k, 1M), or IEC suffixes (1Ki, 1Mi). Suffixes are case-sensitive."
            ) from None
    from decimal import Decimal  # few launches write a suffix, and the import takes milliseconds

    number, suffix = found.groups()
    if suffix in _SI:
        return int(Decimal(number) * _SI[suffix])
    if "." in number:
        raise BadValue(
            f"Decimals are not allowed with IEC suffixes like '{suffix}'. Use an integer IEC value such as "
            f"'{int(Decimal(number))}{suffix}', or an SI value such as '{number}{suffix[0]}'."
        )
    return int(number) * _IEC[suffix]


def nullable_str(text: str) -> str | None:
    """The text; None for the empty text and for ``None``."""
    return None if text in ("", "None") else text


def json_list(text: str) -> Any:
    """Any JSON value (the engine reads this with orjson, which is stricter than ``json``)."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        raise BadValue(f"Invalid JSON list: {text}. Please provide a valid JSON list.") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


TYPES: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "json.loads": json.loads,
    "human_readable_int": human_readable_int,
    "nullable_str": nullable_str,
    "json_list_type": json_list,
}
