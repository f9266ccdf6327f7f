"""The ``--cuda-graph-config`` language: phases, backends, keys; who wins; what is locked.

Within the operator's words the engine's precedence holds, highest first: the JSON, the per-phase flags, the per-phase
off-switches, the global off-switch. Every (phase, key) so set is locked: the engine's cascades leave a locked backend
alone. The platform's defaults stand below all of these and lock nothing.

Source: SGLang 0.5.23, ``model_executor/cuda_graph_config.py`` and ``arg_groups/cuda_graph_hook.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import InvalidLaunch
from engine.launch import PHASES, Phase
from engine.sglang.argument_types import BadValue


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLanguage:
    """One release's graph language.

    ``backends`` and ``keys`` are what each phase allows; ``retired`` the backends that the parser itself refuses, with
    the engine's words; ``defaults`` the value of every key where nothing is set, on a CUDA machine.
    """

    backends: Mapping[str, tuple[str, ...]]
    keys: Mapping[str, tuple[str, ...]]
    retired: Mapping[str, str]
    defaults: Mapping[str, Mapping[str, Any]]

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> GraphLanguage:
        """From the ``graph`` part of a release's ``tables.json``."""
        return cls(
            backends={phase: tuple(names) for phase, names in table["backends"].items()},
            keys={phase: tuple(names) for phase, names in table["keys"].items()},
            retired=dict(table["retired"]),
            defaults={phase: dict(values) for phase, values in table["defaults"].items()},
        )


def parse_backend(text: Any, language: GraphLanguage) -> Any:
    """One backend word of a per-phase flag, or of the JSON; choices are checked later, as the engine does.

    Raises:
        BadValue: a backend that this release has removed.
    """
    if isinstance(text, str) and text in language.retired:
        raise BadValue(language.retired[text])
    return text


def parse_config(text: str, language: GraphLanguage) -> dict[str, dict[str, Any]]:
    """The JSON of ``--cuda-graph-config``, checked as the engine's parser checks it (phases and keys, not values).

    Raises:
        BadValue: in the engine's words.
    """
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadValue(f"--cuda-graph-config must be JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise BadValue(f"--cuda-graph-config must be a JSON object, got {type(parsed).__name__}")
    out: dict[str, dict[str, Any]] = {}
    for phase, settings in parsed.items():
        if phase not in PHASES:
            raise BadValue(f"--cuda-graph-config: unknown phase '{phase}', expected one of {PHASES}")
        if not isinstance(settings, dict):
            raise BadValue(f"--cuda-graph-config['{phase}'] must be a JSON object, got {type(settings).__name__}")
        if "backend" in settings:
            parse_backend(settings["backend"], language)
        for key in settings:
            if key not in language.keys[phase]:
                raise BadValue(
                    f"--cuda-graph-config['{phase}']: unknown key '{key}', expected one of {language.keys[phase]}"
                )
        out[phase] = dict(settings)
    return out


def check_defaults(defaults: Mapping[str, Any], language: GraphLanguage) -> dict[Phase, dict[str, Any]]:
    """The platform's defaults, checked whole: phases, keys, backends, and the type of every value.

    Raises:
        InvalidLaunch: with the dotted path below ``defaults`` and what may stand there.
    """
    out: dict[Phase, dict[str, Any]] = {}
    if defaults == {}:
        return out
    if not isinstance(defaults, Mapping):
        raise InvalidLaunch("The defaults must be an object.", remedy=_SHAPE, field="defaults")
    for phase, settings in defaults.items():
        if phase not in PHASES:
            raise InvalidLaunch(
                f"Unknown phase {phase!r}.",
                remedy=f"Phases are {' and '.join(PHASES)}.",
                field=f"defaults.{phase}",
            )
        if not isinstance(settings, Mapping):
            raise InvalidLaunch("A phase must be an object.", remedy=_SHAPE, field=f"defaults.{phase}")
        for key, value in settings.items():
            _check_default(phase, str(key), value, language)
        out[phase] = dict(settings)
    return out


_SHAPE = 'Write it like {"prefill": {"backend": "full"}}.'


def _check_default(phase: str, key: str, value: Any, language: GraphLanguage) -> None:
    where = f"defaults.{phase}.{key}"
    if key not in language.keys[phase]:
        raise InvalidLaunch(
            f"Unknown key {key!r} for {phase}.",
            remedy=f"This release knows {', '.join(language.keys[phase])}.",
            field=where,
        )
    if key == "backend":
        if value not in language.backends[phase]:
            raise InvalidLaunch(
                f"Backend {value!r} is not allowed for {phase}.",
                remedy=f"Allowed: {', '.join(language.backends[phase])}.",
                field=where,
            )
    elif key == "tc_compiler":
        if not isinstance(value, str):
            raise InvalidLaunch("The compiler is a word.", remedy="For example eager.", field=where)
    elif key == "bs":
        if not isinstance(value, list | tuple) or not value or not all(_positive(size) for size in value):
            raise InvalidLaunch(
                "Capture sizes are a list of positive integers.", remedy="For example [1, 2, 4, 8].", field=where
            )
    elif not _positive(value):
        raise InvalidLaunch(f"{key} is a positive integer, not {value!r}.", remedy="For example 256.", field=where)


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
