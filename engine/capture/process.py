"""One worker process below its warden: pipes, limits, end. Nothing here knows what a capture is."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from signal import SIGKILL
from typing import Literal

from engine.capture.folders import JobFolder
from engine.capture.processes import descendants, end_marked, held_bytes

Ending = Literal["exited", "timeout", "cancelled", "memory", "output", "lost"]
"""``exited``: by itself, or killed by somebody else. ``lost``: its warden was killed, and so was all below it."""

DEFAULT_PYTHON = sys.executable
TAIL_BYTES = 16 * 1024
LONGEST_LINE = 64 * 1024
GRACE_S = 2.0
_POLL_S = 0.05
_WEIGH_S = 0.25
_SPAWN_S = 60.0
_WARDEN_S = 15.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker may take, with all that it starts: seconds from its start, bytes of the machine's memory held at
    one time, and bytes written to standard output, standard error and the event pipe."""

    timeout_s: float
    memory_bytes: int
    output_bytes: int


class Worker:
    """A child process in a session of its own, below a warden that outlives it and ends what it leaves.

    ``on_line`` gets each line that the child writes to its event pipe; standard output and error are kept as a tail of
    :data:`TAIL_BYTES`.

    Raises:
        OSError: the command, or the warden, cannot be started.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        *,
        folder: JobFolder,
        environment: Mapping[str, str],
        on_line: Callable[[bytes], None],
    ) -> None:
        self._folder = folder
        self._status: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.written = 0
        events, child_end = os.pipe()
        told, tell = os.pipe()
        try:
            self._warden = subprocess.Popen(  # noqa: S603 - an argument list made here, no shell
                _warden_command(tell, folder, command(child_end)),
                cwd=folder.path,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                pass_fds=(child_end, tell, folder.lock),
                start_new_session=True,
            )
        except BaseException:
            os.close(events)
            os.close(told)
            raise
        finally:
            os.close(child_end)
            os.close(tell)
        assert self._warden.stdout is not None  # noqa: S101 - opened as a pipe above
        self._pipes = selectors.DefaultSelector()
        self._events, self._told = _Lines(events, on_line), _Lines(told, self._status.append)
        readers = {events: self._read_events, told: self._told.read, self._warden.stdout.fileno(): self._read_output}
        for fd, read in readers.items():
            self._pipes.register(fd, selectors.EVENT_READ, read)
        self.pid = self._spawned()

    @property
    def tail(self) -> str:
        """The end of what the child printed."""
        return b"".join(self._tail)[-TAIL_BYTES:].decode("utf-8", errors="replace")

    def wait(self, limits: Limits, *, cancelled: Callable[[], bool]) -> tuple[Ending, int]:
        """Read the child's pipes until nothing of it is left; past a limit, or once ``cancelled()``, end it.

        Returns how it ended, and its exit status (negative: the signal that killed it).
        """
        begun = weighed = time.monotonic()
        ending: Ending = "exited"
        give_up_at = float("inf")
        try:
            while self._warden.poll() is None:
                self._pump(_POLL_S)
                now = time.monotonic()
                if ending == "exited":
                    if cancelled():
                        ending = "cancelled"
                    elif now - begun >= limits.timeout_s:
                        ending = "timeout"
                    elif self.written > limits.output_bytes:
                        ending = "output"
                    elif now - weighed >= _WEIGH_S:
                        weighed = now
                        if held_bytes(descendants(self._warden.pid), limits.memory_bytes) > limits.memory_bytes:
                            ending = "memory"
                    if ending != "exited":
                        self._stop()
                        give_up_at = now + GRACE_S + _WARDEN_S
                elif now >= give_up_at:
                    self._warden.kill()
        finally:
            self._end()
        words = self._status[-1].split() if self._status else []
        if words[:1] == [b"ended"]:
            return ending, int(words[1])
        return "lost" if ending == "exited" else ending, -SIGKILL

    def _spawned(self) -> int:
        """The child's process id, once the warden has told it."""
        end = time.monotonic() + _SPAWN_S
        while not self._status and time.monotonic() < end:
            if not self._pump(_POLL_S) and self._warden.poll() is not None:
                break
        word, _, rest = self._status[0].decode(errors="replace").partition(" ") if self._status else ("", "", "")
        if word == "spawned":
            return int(rest)
        self._end()
        number, _, message = rest.partition(" ")
        if word == "failed":
            raise OSError(int(number), message)
        raise OSError(f"its warden did not start: {self.tail[-500:]}")

    def _stop(self) -> None:
        assert self._warden.stdin is not None  # noqa: S101 - opened as a pipe above
        try:
            self._warden.stdin.write(b"x")
        except OSError:  # it has just ended
            return

    def _end(self) -> None:
        """Leave nothing behind: not the warden, not what it may have left, no pipe."""
        if self._warden.poll() is None:
            self._warden.kill()
        self._warden.wait()
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end and self._pump(0):
            pass
        if not self._all_ended():
            end_marked(self._folder.mark, within_s=GRACE_S)
        self._pipes.close()
        self._events.close()
        self._told.close()
        for pipe in (self._warden.stdin, self._warden.stdout):
            if pipe is not None:
                pipe.close()

    def _all_ended(self) -> bool:
        """Whether the warden said that nothing is left."""
        words = self._status[-1].split() if self._status else []
        return words[:1] == [b"failed"] or (words[:1] == [b"ended"] and words[2:] == [b"0"])

    def _pump(self, wait: float) -> bool:
        """Read what is there; False when nothing was, or no pipe is left."""
        if not self._pipes.get_map():
            time.sleep(wait)
            return False
        ready = self._pipes.select(wait)
        for key, _ in ready:
            if not key.data():
                self._pipes.unregister(key.fd)
        return bool(ready)

    def _read_events(self) -> int:
        size = self._events.read()
        self.written += size
        return size

    def _read_output(self) -> int:
        assert self._warden.stdout is not None  # noqa: S101 - opened as a pipe above
        data = os.read(self._warden.stdout.fileno(), 65536)
        self.written += len(data)
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) > TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())
        return len(data)


class _Lines:
    """A pipe of lines; one that is longer than :data:`LONGEST_LINE` is dropped."""

    def __init__(self, fd: int, on_line: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_line = on_line
        self._partial = b""

    def read(self) -> int:
        """Read what is there; how many bytes, 0 at the end."""
        data = os.read(self._fd, 65536)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._on_line(line)
        if len(self._partial) > LONGEST_LINE:
            self._partial = b""
        return len(data)

    def close(self) -> None:
        os.close(self._fd)


def _warden_command(tell: int, folder: JobFolder, command: Sequence[str]) -> list[str]:
    own = [DEFAULT_PYTHON, "-S", "-P", "-m", "engine.capture.warden"]  # without site-packages: it starts in 30 ms
    return [*own, str(tell), str(folder.lock), str(folder.path), str(GRACE_S), *command]


def python_command(python: str, module: str, *arguments: str) -> list[str]:
    """``python -m module arguments``, with a traceback on a fatal signal."""
    return [python, "-X", "faulthandler", "-m", module, *arguments]
