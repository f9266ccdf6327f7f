"""Secrets that tests hand to graphgate, and the logs in which none of them may turn up.

A test that makes or chooses a secret plants it. When a run ends, ``api_tests/conftest.py`` looks for all of them in
every log below the run's temporary folder (``*.log``), in the databases and captures that servers left there, and in
the logs that were kept from folders which are gone by then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

_SHORTEST = 8
_LARGEST = 64 * 2**20
_NAMES = ("TOKEN", "SECRET", "PASSWORD", "API_KEY")
_LOOKED_AT = ("*.log", "graphgate.sqlite*", "captures/**/*")

_secrets: set[str] = set()
_kept: list[Path] = []


def plant(secret: str) -> str:
    """The secret, which from now on may be in no log."""
    if len(secret) < _SHORTEST:
        raise ValueError("too short to tell from other text")
    _secrets.add(secret)
    return secret


def plant_settings(settings: Mapping[str, str]) -> None:
    """Plant what of these environment variables is secret: tokens, and the passwords in addresses."""
    for name, value in settings.items():
        password = urlsplit(value).password if "://" in value else None
        secret = password or (value if any(word in name for word in _NAMES) else "")
        if len(secret) >= _SHORTEST:
            plant(secret)


def keep(log: Path) -> None:
    """Remember a log whose folder is about to be removed."""
    if log.is_file():
        with tempfile.NamedTemporaryFile(prefix=f"graphgate-{log.name}-", delete=False) as copy:
            copy.write(log.read_bytes())
        _kept.append(Path(copy.name))


def planted() -> frozenset[str]:
    """The secrets so far."""
    return frozenset(_secrets)


def logs_below(folder: Path) -> Iterator[Path]:
    """Every file below the folder that processes of graphgate wrote, and the logs that were kept."""
    found = {file for pattern in _LOOKED_AT for file in folder.rglob(pattern) if file.is_file()}
    yield from sorted(found)
    yield from _kept


def forget_kept() -> None:
    """Remove the copies of logs that were kept."""
    while _kept:
        _kept.pop().unlink(missing_ok=True)


def leaks(secrets: Iterable[str], logs: Iterable[Path]) -> list[str]:
    """``FILE:LINE: the line with the secret taken out``, for each line of the logs that holds one of the secrets."""
    wanted = [secret.encode() for secret in sorted(secrets)]
    found = []
    for log in logs:
        if log.stat().st_size > _LARGEST:
            raise ValueError(f"{log} is larger than a log should be")
        content = log.read_bytes()
        present = [secret for secret in wanted if secret in content]
        for number, line in enumerate(content.split(b"\n") if present else (), start=1):
            for secret in present:
                if secret in line:
                    shown = line.replace(secret, b"<the secret>")[:300].decode(errors="replace")
                    found.append(f"{log}:{number}: {shown}")
    return found
