"""Answers are kept and shown to others, so the secrets of a launch are taken out of them first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.launch import Launch

HIDDEN = "***"
_NAMES = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|(?:API|ACCESS|SECRET|PRIVATE)_?KEY)(?:_|$)")
_OPTIONS = re.compile(r"--(?:[a-z-]+-)?(?:api-key|token|password|secret)")
_SHORTEST = 4
"""Texts shorter than this hide nothing, and stand in too many other places."""


def secrets_of(launch: Launch) -> frozenset[str]:
    """The values of environment variables and options whose names say that they are secret."""
    found = {value for name, value in launch.environment.items() if _NAMES.search(name.upper())}
    for index, word in enumerate(launch.arguments):
        option, equals, value = word.partition("=")
        if _OPTIONS.fullmatch(option.replace("_", "-")):
            following = launch.arguments[index + 1 : index + 2]
            found.add(value if equals else "".join(following))
    return frozenset(value for value in found if len(value) >= _SHORTEST and not value.startswith("--"))


def without(value: Any, secrets: frozenset[str]) -> Any:
    """The value with each of the secrets hidden in every text of it."""
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {key: without(item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without(item, secrets) for item in value]
    return value
