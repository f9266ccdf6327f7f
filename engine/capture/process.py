"""One worker process: its environment, its pipes, its end. Nothing here knows what a capture is."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

Ending = Literal["exited", "timeout", "cancelled"]

TAIL_BYTES = 16 * 1024
LONGEST_LINE = 64 * 1024
GRACE_S = 2.0
POLL_S = 0.05

_KEPT = re.compile(
    r"PATH|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|SYSTEMROOT|VIRTUAL_ENV|"
    r"(CUDA|NVIDIA|NCCL|TORCH|PYTORCH|OMP|MKL|OPENBLAS)_\w+"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|AUTH", re.IGNORECASE)


def scrubbed(environment: Mapping[str, str], *, home: Path, import_root: Path) -> dict[str, str]:
    """What of ``environment`` a worker needs: paths, locale, GPU and thread settings; nothing named like a secret."""
    kept = {name: value for name, value in environment.items() if _KEPT.fullmatch(name) and not _SECRET.search(name)}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(import_root), "PYTHONUNBUFFERED": "1"}


class Worker:
    """A child process in a session and process group of its own.

    ``on_line`` gets each line that the child writes to its event pipe; standard output and error are kept as a tail of
    :data:`TAIL_BYTES`. Standard input stays open and silent: the child ends when it closes.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        on_line: Callable[[bytes], None],
    ) -> None:
        self._on_line = on_line
        self._partial = b""
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._events, child_end = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an argument list made here, no shell
                list(command(child_end)),
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(child_end,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._events)
            raise
        finally:
            os.close(child_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def tail(self) -> str:
        """The end of what the child printed."""
        return b"".join(self._tail)[-TAIL_BYTES:].decode("utf-8", errors="replace")

    def wait(self, *, timeout_s: float, cancelled: Callable[[], bool]) -> tuple[Ending, int]:
        """Read the child's pipes until it ends; past ``timeout_s``, or once ``cancelled()``, end its whole group.

        Returns how it ended, and its exit status (negative: the signal that killed it).
        """
        deadline = time.monotonic() + timeout_s
        ending: Ending = "exited"
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe above
        readers = {self._events: self._read_events, self._process.stdout.fileno(): self._read_output}
        with selectors.DefaultSelector() as selector:
            for fd in readers:
                selector.register(fd, selectors.EVENT_READ)
            try:
                while self._process.poll() is None and ending == "exited":
                    self._pump(selector, readers, POLL_S)
                    if cancelled():
                        ending = "cancelled"
                    elif time.monotonic() >= deadline:
                        ending = "timeout"
            finally:
                self._end_group()
                self._drain(selector, readers)
        self._close()
        return ending, self._process.returncode

    def _pump(self, selector: selectors.BaseSelector, readers: Mapping[int, Callable[[], bool]], wait: float) -> bool:
        """Read what is there; False when nothing was, or no pipe is left."""
        if not selector.get_map():
            time.sleep(wait)
            return False
        ready = selector.select(wait)
        for key, _ in ready:
            if not readers[key.fd]():
                selector.unregister(key.fd)
        return bool(ready)

    def _drain(self, selector: selectors.BaseSelector, readers: Mapping[int, Callable[[], bool]]) -> None:
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end and self._pump(selector, readers, 0):
            pass

    def _read_events(self) -> bool:
        data = os.read(self._events, 65536)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._on_line(line)
        if len(self._partial) > LONGEST_LINE:
            self._partial = b""
        return bool(data)

    def _read_output(self) -> bool:
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe above
        data = os.read(self._process.stdout.fileno(), 65536)
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) > TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())
        return bool(data)

    def _end_group(self) -> None:
        """SIGTERM to the group, a moment's grace, then SIGKILL: also to grandchildren of a child that is gone."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # nobody of the group is left
            return

    def _close(self) -> None:
        os.close(self._events)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def python_command(python: str, module: str, *arguments: str) -> list[str]:
    """``python -m module arguments``, with a traceback on a fatal signal."""
    return [python, "-X", "faulthandler", "-m", module, *arguments]


DEFAULT_PYTHON = sys.executable
