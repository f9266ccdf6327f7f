"""Command lines rewritten: the operator's own words kept, one graph setting changed.

Only called for launches that the engine accepts, so an abbreviated option here is an unambiguous one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.launch import Phase

CONFIG_OPTION = "--cuda-graph-config"
_SHARED_PREFIX = len("--cuda-graph-")


def backend_option(phase: Phase) -> str:
    """The per-phase convenience flag of that phase's backend."""
    return f"--cuda-graph-backend-{phase}"


def _names(token: str, option: str) -> bool:
    name = token.split("=", 1)[0]
    return len(name) > _SHARED_PREFIX and option.startswith(name)


def _occurrences(arguments: Sequence[str], option: str) -> Iterator[tuple[int, int, str]]:
    """(first token, one past the last, value) of each occurrence of a one-value option."""
    index = 0
    while index < len(arguments):
        token = arguments[index]
        if token.startswith("--") and _names(token, option):
            if "=" in token:
                yield index, index + 1, token.split("=", 1)[1]
            elif index + 1 < len(arguments):
                yield index, index + 2, arguments[index + 1]
                index += 1
        index += 1


def _config(value: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _last_config(arguments: Sequence[str]) -> tuple[tuple[int, int] | None, dict[str, Any]]:
    found: tuple[tuple[int, int] | None, dict[str, Any]] = (None, {})
    for start, end, value in _occurrences(arguments, CONFIG_OPTION):
        found = ((start, end), _config(value))
    return found


def backend_as_written(arguments: Sequence[str], phase: Phase) -> str | None:
    """The words by which the operator set that phase's backend, quoted for a shell; None where nothing sets it.

    The JSON wins over the flag, as in the engine.
    """
    span, config = _last_config(arguments)
    settings = config.get(phase)
    if span is not None and isinstance(settings, dict) and "backend" in settings:
        return shlex.join(arguments[span[0] : span[1]])
    written = None
    for start, end, _ in _occurrences(arguments, backend_option(phase)):
        written = shlex.join(arguments[start:end])
    return written


def without_backend(arguments: Sequence[str], phase: Phase) -> tuple[str, ...]:
    """The command line with nothing said of that phase's backend, so that the engine chooses."""
    kept = list(arguments)
    for start, end, _ in reversed(list(_occurrences(kept, backend_option(phase)))):
        del kept[start:end]
    span, config = _last_config(kept)
    settings = config.get(phase)
    if span is not None and isinstance(settings, dict) and "backend" in settings:
        rest = {key: value for key, value in settings.items() if key != "backend"}
        changed = {name: rest if name == phase else value for name, value in config.items()}
        if not rest:
            del changed[phase]
        kept[span[0] : span[1]] = [CONFIG_OPTION, json.dumps(changed)] if changed else []
    return tuple(kept)


def with_backend(arguments: Sequence[str], phase: Phase, backend: str) -> tuple[str, ...]:
    """The command line with that phase's backend set by its flag, and by nothing else."""
    return (*without_backend(arguments, phase), backend_option(phase), backend)


def with_settings(arguments: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """The command line with these graph settings added where it does not say them itself in JSON."""
    if not any(settings.values()):
        return tuple(arguments)
    span, config = _last_config(arguments)
    merged = {phase: {**values, **_mapping(config.get(phase))} for phase, values in settings.items() if values}
    written = [CONFIG_OPTION, json.dumps({**config, **merged})]
    out = list(arguments)
    if span is None:
        return (*out, *written)
    out[span[0] : span[1]] = written
    return tuple(out)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
