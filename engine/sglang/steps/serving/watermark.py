"""``--watermark-config``: JSON on the command line is read; a file of the node is not."""

from __future__ import annotations

import json
from typing import Any

from engine.sglang.resolution import Refusal, Resolution

_FIELDS = (
    "key",
    "key_b",
    "context_window",
    "mixing_probability",
    "max_probability",
    "default_enabled",
    "enforce_all",
)
_MOST_BYTES = 4096
_HEX = frozenset("0123456789abcdefABCDEF")


def run(r: Resolution) -> None:
    """Form and types; the values become arguments."""
    source = r.args.watermark_config
    if source is None or not source.lstrip().startswith("{"):
        return
    if len(source.encode()) > _MOST_BYTES:
        raise _wrong("watermark config exceeds 4096 bytes")
    try:
        config: dict[str, Any] = json.loads(source)
    except json.JSONDecodeError:
        raise _wrong("failed to read watermark config JSON") from None
    if set(config) - set(_FIELDS):
        raise _wrong("watermark config contains unknown fields")
    for name in ("key", "key_b"):
        if config.get(name) is not None:
            _key(config[name])
    window = config.get("context_window")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= 64):
        raise _wrong("watermark config context_window must be an integer from 1 to 64")
    for name in ("mixing_probability", "max_probability"):
        value = config.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise _wrong(f"watermark config {name} must be a number")
    for name in ("default_enabled", "enforce_all"):
        if config.get(name) is not None and not isinstance(config[name], bool):
            raise _wrong(f"watermark config {name} must be a boolean")
    for name, value in config.items():
        if value is not None:
            r.set(f"watermark_{name}", value, "--watermark-config", layer="operator")


def _key(value: Any) -> None:
    if not isinstance(value, str):
        raise _wrong("watermark key must be a hex string")
    digits = value[2:] if value.lower().startswith("0x") else value
    if not 1 <= len(digits) <= 16:
        raise _wrong("watermark key must contain 1 to 16 hex digits")
    if any(sign not in _HEX for sign in digits):
        raise _wrong("watermark key must contain only hex digits")


def _wrong(message: str) -> Refusal:
    return Refusal("WatermarkConfigError", message)
