"""What this worker is, found out in a short child process of the interpreter that captures will run with."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import engine
from engine.version import VERSION
from service.fleet.needs import Ability, kind_of
from service.store.database import now
from service.store.fleet import WorkerRow

_log = logging.getLogger("graphgate.worker")
_WAIT_S = 120.0
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME")


@dataclass(frozen=True, slots=True)
class Machine:
    """The device that captures run on: see :mod:`engine.capture.identify`. Without a GPU the kind is ``cpu``."""

    gpu: str | None = None
    memory_mib: int | None = None
    driver: str | None = None
    torch: str | None = None

    @property
    def kind(self) -> str:
        """Its kind, as queues are named by it."""
        return kind_of(self.gpu)

    @property
    def ability(self) -> Ability:
        """What it can run."""
        return Ability(self.kind, self.memory_mib)

    def row(self, worker: str) -> WorkerRow:
        """The worker of that name, on this machine, as it is registered."""
        return WorkerRow(
            id=worker,
            kind=self.kind,
            gpu=self.gpu,
            memory_mib=self.memory_mib,
            driver=self.driver,
            torch=self.torch,
            version=VERSION,
            started_at=now(),
        )


def examine(python: str) -> Machine:
    """What a capture by that interpreter would run on. Where it cannot be asked: a machine without torch."""
    root = Path(engine.__file__).resolve().parents[1]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        asked = subprocess.run(  # noqa: S603 - an argument list made here, no shell
            [python, "-m", "engine.capture.identify"],
            env={**kept, "PYTHONPATH": str(root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WAIT_S,
            check=True,
        )
        told = json.loads(asked.stdout.splitlines()[-1])
        return Machine(**{name: told[name] for name in Machine.__slots__})
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        _log.warning("the interpreter for captures cannot be asked what it runs on", extra={"why": repr(error)[:300]})
        return Machine()
