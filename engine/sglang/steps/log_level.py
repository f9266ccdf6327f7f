"""The log level: the engine looks it up among the names of Python's logging before it resolves anything."""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution

_LEVELS = frozenset({"CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"})


def run(r: Resolution) -> None:
    """Refuse a level that logging does not have, as the look-up itself fails."""
    name = str(r.args.log_level).upper()
    if name in _LEVELS:
        return
    import logging  # it takes milliseconds to import, and a level that it has needs no look

    if not hasattr(logging, name):
        raise Refusal("AttributeError", f"module 'logging' has no attribute '{name}'")
    level = getattr(logging, name)
    if isinstance(level, str) and level not in logging.getLevelNamesMapping():
        raise Refusal("ValueError", f"Unknown level: {level!r}")
