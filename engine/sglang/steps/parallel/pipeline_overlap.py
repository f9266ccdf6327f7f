"""Pipeline stages take turns: no overlap schedule between them."""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> None:
    """Switch the overlap schedule off under pipeline parallelism."""
    if r.args.pp_size > 1:
        r.warn("WARNING: Pipeline parallelism is incompatible with overlap schedule.")
        r.set("disable_overlap_schedule", True, "pipeline parallelism")
