"""No network in the worker process, nor in anything that it starts: a capture needs none.

The kernel refuses the system calls where it can be told to (seccomp, on Linux); Python's own sockets are refused in any
case, with a sentence.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

_LOCAL_FAMILIES = (1, 16)
"""AF_UNIX and AF_NETLINK: the GPU's driver and the C library talk to this machine's kernel and daemons by them."""

_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Linux's audit number of the architecture, and the number of socket(2) there (linux/audit.h, asm/unistd.h)."""

_IO_URING_SETUP = 425
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2


class NetworkRefused(PermissionError):
    """Something in the worker process asked for a network."""


def refuse_network() -> str:
    """Close the network for this process and its children, for good; who refuses: ``kernel`` or ``interpreter``."""
    sys.addaudithook(_refuse)
    return "kernel" if _filter_calls() else "interpreter"


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.__new__":
        refused = arguments[1] not in _LOCAL_FAMILIES and arguments[1] != -1
    else:
        refused = event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
    if refused:
        raise NetworkRefused(errno.EACCES, "A capture has no network: nothing may be fetched or sent from here.")


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def _filter_calls() -> bool:
    """Have the kernel refuse sockets that leave the machine; False where it cannot be told to."""
    known = _ARCHITECTURES.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    architecture, socket = known
    program = (
        (_LOAD, 0, 0, 4),  # the architecture: another one numbers its calls otherwise
        (_EQUAL, 0, 8, architecture),
        (_LOAD, 0, 0, 0),  # the call
        (_AT_LEAST, 6, 0, _X32),
        (_EQUAL, 5, 0, _IO_URING_SETUP),  # it could open sockets past this filter
        (_EQUAL, 0, 3, socket),
        (_LOAD, 0, 0, 16),  # its first argument: the family
        (_EQUAL, 1, 0, _LOCAL_FAMILIES[0]),
        (_EQUAL, 0, 1, _LOCAL_FAMILIES[1]),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EACCES),
    )
    instructions = (_Instruction * len(program))(*(_Instruction(*fields) for fields in program))
    prctl = ctypes.CDLL(None).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    filter_ = _Program(len(program), instructions)
    return bool(prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filter_), 0, 0) == 0)
