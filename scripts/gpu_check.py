"""Captures on one CUDA device: every family, both allocation orders, replay against eager, times and pool bytes.

    python scripts/gpu_check.py [--out FILE] [--limit SECONDS]
    python scripts/gpu_check.py --device cpu     a rehearsal without a GPU: operator graphs, "emulated"

Writes one JSON file, after each step anew, so that whatever ends it leaves what was measured. Exit status 0: everything
is as it must be; 1: something is not, or was not reached before the limit; 2: it cannot run here, and why.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FORM = 1
LIMIT_S = 330.0
STEPS = ("models", "workers", "clean", "faults")


class CannotRun(Exception):
    """This machine cannot do what was asked."""


def checked_device(wanted: str) -> Any:
    """The device, as torch knows it.

    Raises:
        CannotRun: no torch, or no CUDA device.
    """
    if find_spec("torch") is None:
        raise CannotRun("torch is not installed for this interpreter. Install it: pip install 'graphgate[worker]'.")
    import torch

    if wanted == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = torch.version.cuda or "no CUDA"
        raise CannotRun(
            f"there is no CUDA device here: torch {torch.__version__}, built for {built}, sees none. Run it on a "
            "machine with an NVIDIA GPU, or rehearse with --device cpu, which measures nothing."
        )
    return torch.device("cuda", torch.cuda.current_device())


class Result:
    """The JSON file: written anew after every step."""

    def __init__(self, path: Path, limit_s: float, **about: Any) -> None:
        self._path = path
        self._limit_s = limit_s
        self._begun = time.monotonic()
        self.values: dict[str, Any] = {"form": FORM, "date": datetime.now(UTC).isoformat(timespec="seconds"), **about}
        self.values |= {"limit_s": limit_s, "seconds": 0.0, "complete": False, "as_it_must_be": False}
        self.values |= {"problems": [], "not_reached": []}

    def step(self, name: str, run: Callable[[], dict[str, Any]], into: list[dict[str, Any]]) -> None:
        """Do one step and keep what it says; past the limit, keep that it was not reached."""
        if time.monotonic() - self._begun > self._limit_s:
            self.values["not_reached"].append(name)
            return
        begun = time.monotonic()
        try:
            said = run()
        except Exception as failure:  # one step that fails must not take the others' figures with it
            said = {"name": name, "problems": [f"{type(failure).__name__}: {failure}"[:2000]]}
        said["seconds"] = round(time.monotonic() - begun, 2)
        into.append(said)
        self.values["problems"] += [f"{name}: {problem}" for problem in said["problems"]]
        self.write()
        print(f"{said['seconds']:7.1f} s  {name}: {'; '.join(said['problems']) or 'as it must be'}", flush=True)

    def finish(self) -> bool:
        """Write the last form; whether everything was reached and is as it must be."""
        self.values["complete"] = not self.values["not_reached"]
        self.values["as_it_must_be"] = self.values["complete"] and not self.values["problems"]
        self.write()
        return bool(self.values["as_it_must_be"])

    def write(self) -> None:
        self.values["seconds"] = round(time.monotonic() - self._begun, 1)
        self._path.write_text(json.dumps(self.values, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def versions(device: Any) -> Iterator[tuple[str, str]]:
    """What the figures depend on."""
    import torch

    from engine.version import VERSION

    yield "graphgate", VERSION
    yield "python", platform.python_version()
    yield "torch", str(torch.__version__)
    if device.type == "cuda":
        yield "cuda", str(torch.version.cuda)
        yield "compute_capability", ".".join(map(str, torch.cuda.get_device_capability(device)))


def main() -> int:
    """Run every step that fits into the limit."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    reader.add_argument("--out", type=Path, default=Path("gpu-check.json"))
    reader.add_argument("--limit", type=float, default=LIMIT_S, help="seconds after which no step begins")
    reader.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, metavar="STEP", help=", ".join(STEPS))
    reader.add_argument("--models", nargs="+", metavar="ID", help="of the packaged catalogue; all families by default")
    reader.add_argument("--clean-runs", type=int, default=20)
    reader.add_argument("--faults", type=int, help="how many of the planted faults; all by default")
    reader.add_argument("--rounds", type=int, default=5, help="of which the best counts, for each time")
    asked = reader.parse_args()
    sys.path.insert(0, str(ROOT))
    try:
        device = checked_device(asked.device)
    except CannotRun as why:
        print(f"gpu_check cannot run: {why}", file=sys.stderr)
        return 2
    import torch
    from _gpu_parts import IN_WORKERS, MODELS, clean_runs, in_a_worker, in_this_process, planted_faults

    torch.set_num_threads(1)
    measured = device.type == "cuda"
    result = Result(
        asked.out,
        asked.limit,
        claim="measured" if measured else "emulated",
        device=torch.cuda.get_device_name(device) if measured else f"CPU ({platform.machine()})",
        versions=dict(versions(device)),
        models=[],
        workers=[],
        faults=[],
        clean=[],
    )
    print(f"{result.values['claim']} on {result.values['device']}; result in {asked.out}")
    models, values = asked.models or MODELS, result.values
    if "models" in asked.steps:
        for model in models:
            result.step(model, partial(in_this_process, model, device, asked.rounds), values["models"])
    if "workers" in asked.steps:
        for model in asked.models or IN_WORKERS:
            result.step(f"{model}, in a worker", partial(in_a_worker, model, asked.device), values["workers"])
    if "clean" in asked.steps:
        result.step("clean runs over random shapes", partial(clean_runs, asked.clean_runs, device), values["clean"])
    if "faults" in asked.steps:
        # Last: a capture that fails on purpose may leave the process' CUDA context the worse for it.
        result.step("planted faults", partial(planted_faults, device, asked.faults), values["faults"])
    return 0 if result.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
