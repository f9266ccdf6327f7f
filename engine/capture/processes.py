"""What the kernel says about processes: who descends from whom, what they hold, who carries a mark. Linux's /proc.

Elsewhere every answer is empty, and only a worker's own process group is known.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

_PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(root: int) -> list[int]:
    """The living processes below ``root``, nearest first; zombies aside."""
    children: dict[int, list[int]] = {}
    for pid in _everybody():
        state, parent = _state(pid)
        if state not in ("", "Z", "X"):
            children.setdefault(parent, []).append(pid)
    found, at = [root], 0
    while at < len(found):
        found.extend(children.get(found[at], ()))
        at += 1
    return found[1:]


def held_bytes(pids: Iterable[int], limit: int) -> int:
    """Bytes of memory that these processes hold together.

    Their resident sets are added up; only where that is above ``limit`` is memory that they share counted once, for
    that costs the kernel a walk through every mapping.
    """
    everybody = list(pids)
    resident = sum(map(_resident, everybody))
    return resident if resident <= limit else sum(map(_proportional, everybody))


def marked(mark: bytes) -> list[int]:
    """The processes in whose environment ``mark`` (NAME=value) stands, as far as this user may look."""
    return [pid for pid in _everybody() if mark in _read(f"/proc/{pid}/environ").split(b"\0")]


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to each; those that are gone already have nothing to be told."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def end_marked(mark: bytes, *, within_s: float) -> None:
    """Kill those that carry ``mark`` until none is left, or for so long."""
    end = time.monotonic() + within_s
    while (left := marked(mark)) and time.monotonic() < end:
        send(signal.SIGKILL, left)
        time.sleep(0.01)


def machine_bytes() -> int | None:
    """Memory that processes here may take: the machine's, or the control group's where that is less."""
    lines = _read("/proc/meminfo").splitlines()
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemTotal:")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(path).strip()
        if text.isdigit():
            found.append(int(text))
    return min(found, default=None)


def _everybody() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names alone, and often
    except FileNotFoundError:
        return []


def _state(pid: int) -> tuple[str, int]:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (fields[0].decode("ascii"), int(fields[1])) if len(fields) > 1 else ("", 0)


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return _resident(pid)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the same: hundreds of these at a time
            return file.read()
    except OSError:  # gone meanwhile, or another user's
        return b""
