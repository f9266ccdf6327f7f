"""A capture's folder: locked for as long as somebody is responsible for it, swept up when nobody is."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.capture.environment import MARK
from engine.capture.processes import end_marked

PREFIX = "graphgate-capture-"
_LOCK = "lock"
_END_S = 5.0
_UNLOCKED_S = 60.0
"""Seconds after which a folder without a lock is nobody's: its maker needs microseconds."""


@dataclass(frozen=True, slots=True)
class JobFolder:
    """``path``, and the descriptor of the lock that holds it; whoever inherits the descriptor holds it too."""

    path: Path
    lock: int

    @property
    def mark(self) -> bytes:
        """What the environment of each of this capture's processes holds."""
        return _mark(self.path)


@contextmanager
def job_folder(workdir: Path) -> Iterator[JobFolder]:
    """A new folder below ``workdir``, removed at the end.

    Raises:
        OSError: it cannot be made.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=workdir)).resolve()
    lock = -1
    try:
        beside = path / f"{_LOCK}.new"
        lock = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        beside.rename(path / _LOCK)  # it appears locked, so that no sweep comes in between
        yield JobFolder(path, lock)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def sweep(workdir: Path) -> int:
    """Remove the folders of captures whose supervisor was killed, and end what still runs of them; how many."""
    swept = 0
    try:
        found = [entry.path for entry in os.scandir(workdir) if _ours(entry)]
    except OSError:
        return 0
    for name in found:
        path = Path(name).resolve()
        lock = _taken(path)
        if lock is None:
            continue
        end_marked(_mark(path), within_s=_END_S)
        shutil.rmtree(path, ignore_errors=True)
        swept += 1
        if lock >= 0:
            os.close(lock)
    return swept


def _ours(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.name.startswith(PREFIX)
            and entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    except OSError:
        return False


def _taken(path: Path) -> int | None:
    """The lock of a folder that nobody held, -1 where it never had one; None where it is somebody's."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        try:
            return -1 if time.time() - path.stat().st_mtime > _UNLOCKED_S else None
        except OSError:
            return None
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _mark(path: Path) -> bytes:
    return os.fsencode(f"{MARK}={path}")
