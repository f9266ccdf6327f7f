"""Secrets that the tests hand to graphgate, and the logs in which none of them may turn up.

A test that makes or chooses a secret plants it; whoever starts a process registers its log. When the run ends,
``api_tests/conftest.py`` looks for the ones in the others: pytest removes old temporary folders, but not those of this
run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_SHORTEST = 8
_secrets: set[str] = set()
_logs: set[Path] = set()


def plant(secret: str) -> str:
    """The secret, which from now on may be in no log."""
    if len(secret) < _SHORTEST:
        raise ValueError("too short to tell from other text")
    _secrets.add(secret)
    return secret


def register(log: Path) -> Path:
    """The log, which will be looked through."""
    _logs.add(log)
    return log


def registered() -> frozenset[Path]:
    """The logs so far."""
    return frozenset(_logs)


def planted() -> frozenset[str]:
    """The secrets so far."""
    return frozenset(_secrets)


def leaks(secrets: Iterable[str], logs: Iterable[Path]) -> list[str]:
    """``FILE:LINE: the line with the secret taken out``, for each line of the logs that holds one of the secrets."""
    wanted = [(secret, secret.encode()) for secret in sorted(secrets)]
    found = []
    for log in sorted(logs):
        if not log.is_file():
            continue
        content = log.read_bytes()
        present = [(secret, raw) for secret, raw in wanted if raw in content]
        if not present:
            continue
        for number, line in enumerate(content.split(b"\n"), start=1):
            for _, raw in present:
                if raw in line:
                    found.append(f"{log}:{number}: {line.replace(raw, b'<the secret>')[:300].decode(errors='replace')}")
    return found
