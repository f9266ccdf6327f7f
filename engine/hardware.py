"""GPUs: name, compute capability, memory. The table is ``gpus.json`` beside this file."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.errors import UnknownGpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU as its driver reports it.

    ``product`` is the driver's name; ``capability`` the compute capability (major, minor); ``memory_mib`` the total
    memory in MiB as ``nvidia-smi`` prints it, which is what engines size their defaults by.
    """

    name: str
    product: str
    capability: tuple[int, int]
    memory_mib: int
    aliases: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "product": self.product,
            "compute_capability": f"{self.capability[0]}.{self.capability[1]}",
            "memory_mib": self.memory_mib,
            "aliases": list(self.aliases),
        }


def _fold(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum()).removeprefix("nvidia")


@cache
def all_gpus() -> tuple[Gpu, ...]:
    """Every GPU of the table, in the table's order (by compute capability, then memory)."""
    rows = json.loads((Path(__file__).parent / "gpus.json").read_text(encoding="utf-8"))["gpus"]
    return tuple(
        Gpu(
            name=row["name"],
            product=row["product"],
            capability=(row["capability"][0], row["capability"][1]),
            memory_mib=row["memory_mib"],
            aliases=tuple(row.get("aliases", ())),
        )
        for row in rows
    )


@cache
def _by_name() -> dict[str, Gpu]:
    return {
        written: gpu
        for gpu in all_gpus()
        for key in (gpu.name, gpu.product, *gpu.aliases)
        for written in (_fold(key), key)
    }


def gpu_named(name: str) -> Gpu:
    """The GPU of that name, product name or alias; spelling is free of case, spaces and hyphens.

    Raises:
        UnknownGpu: with the nearest names of the table.
    """
    known = _by_name()
    found = known.get(name) or known.get(_fold(name))
    if found is not None:
        return found
    names = [gpu.name for gpu in all_gpus()]
    near = difflib.get_close_matches(name.upper(), names, n=3, cutoff=0.4)
    shown = name if len(name) <= 40 else name[:40] + "..."
    raise UnknownGpu(
        f"No GPU is named {shown!r} here.",
        remedy=f"Did you mean {' or '.join(near)}? Known: {', '.join(names)}."
        if near
        else f"Known: {', '.join(names)}.",
        field="hardware.gpu",
    )
