"""The process between supervisor and worker: ``python -m engine.capture.warden STATUS-FD LOCK-FD FOLDER GRACE COMMAND``

It starts the worker, adopts every process that the worker leaves behind, in whatever session, and ends only after they
have ended. Standard input is the supervisor's hand: a byte asks for the worker's end (SIGTERM, ``GRACE`` seconds, then
SIGKILL), its end of file means that the supervisor is gone: then all are killed and ``FOLDER`` is removed. To the
status pipe it writes ``spawned PID`` or ``failed ERRNO MESSAGE``, and at the end ``ended STATUS LEFT``: the worker's
exit status (negative: a signal) and how many processes could not be ended.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

from engine.capture.processes import descendants, send

LAST_TRY_S = 10.0
LARGEST_FILE = 2**31
"""Bytes that one file of a worker may have."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: list[str]) -> int:
    """Watch over one worker; see the module."""
    status_fd, lock_fd, folder, grace_s, command = int(argv[0]), int(argv[1]), argv[2], float(argv[3]), argv[4:]
    for fd in (status_fd, lock_fd):
        os.set_inheritable(fd, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in _DEAF_TO:  # a signal to all of a service's processes is the supervisor's to answer
        signal.signal(number, signal.SIG_IGN)
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        worker, worker_input = _spawn(command)
    except OSError as failure:
        os.write(status_fd, f"failed {failure.errno} {failure.strerror}: {failure.filename}\n".encode())
        return 1
    os.write(status_fd, b"spawned %d\n" % worker)
    _drop_output()
    status = _watch(worker, wakes, grace_s)
    left = _end_everybody()
    os.close(worker_input)
    if status is None:
        from shutil import rmtree  # rarely needed, and slow to import

        rmtree(folder, ignore_errors=True)
        return 1
    os.write(status_fd, b"ended %d %d\n" % (status, left))
    return 0


def _spawn(command: list[str]) -> tuple[int, int]:
    """Start the worker in a session of its own; its process id, and the other end of its standard input."""
    reading, writing = os.pipe()
    told, tell = os.pipe()
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != warden:  # it was gone before the call above
                os._exit(1)
            for number in (*_DEAF_TO, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            _limit()
            os.dup2(reading, 0)
            os.execvp(command[0], command)  # noqa: S606 - the supervisor's argument list, no shell wanted
        except OSError as failure:
            os.write(tell, b"%d" % (failure.errno or 0))
        finally:
            os._exit(127)
    os.close(tell)
    os.close(reading)
    error = os.read(told, 64)
    os.close(told)
    if error:
        os.waitpid(pid, 0)
        raise OSError(int(error), os.strerror(int(error)), command[0])
    return pid, writing


def _watch(worker: int, wakes: int, grace_s: float) -> int | None:
    """The worker's exit status; None once the supervisor is gone."""
    kill_at: float | None = None
    while True:
        status = _reap(worker)
        if status is not None:
            return status
        wait = None if kill_at is None else max(0.0, kill_at - time.monotonic())
        ready, _, _ = select.select([0, wakes], [], [], wait)
        if wakes in ready:
            os.read(wakes, 4096)
        if 0 in ready:
            if not os.read(0, 64):
                return None
            send(signal.SIGTERM, descendants(os.getpid()))
            kill_at = time.monotonic() + grace_s
        elif kill_at is not None and time.monotonic() >= kill_at:
            send(signal.SIGKILL, [worker])
            kill_at = None


def _reap(worker: int) -> int | None:
    """Collect whoever has ended; the worker's exit status where it is among them."""
    status: int | None = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == worker:
            status = os.waitstatus_to_exitcode(raw)


def _end_everybody() -> int:
    """Kill what is left until nobody is; how many resisted (a process in the kernel's hands cannot be killed)."""
    end = time.monotonic() + LAST_TRY_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        left = descendants(os.getpid())
        if time.monotonic() >= end:
            return len(left)
        send(signal.SIGKILL, left)
        time.sleep(0.002)


def _limit() -> None:
    """No core files, no file that fills the disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = LARGEST_FILE if hard == resource.RLIM_INFINITY else min(hard, LARGEST_FILE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _drop_output() -> None:
    """Let go of the worker's output, so that its end can be seen."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(nothing, fd)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
