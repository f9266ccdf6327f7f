"""Pipeline stages together with prefill context parallelism."""

from __future__ import annotations

from engine.sglang.resolution import Resolution


def run(r: Resolution) -> str | None:
    """A breakable graph on pipeline stages that also split the context."""
    args = r.args
    if r.graph["prefill"].backend == "breakable" and args.enable_prefill_cp and args.pp_size > 1:
        return "pipeline parallelism with prefill context parallelism is not validated for breakable prefill graphs"
    return None
