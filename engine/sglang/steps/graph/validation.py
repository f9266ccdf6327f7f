"""The last word on the graph configuration: backends that a phase does not allow are refused."""

from __future__ import annotations

from engine.launch import PHASES
from engine.sglang.resolution import Refusal, Resolution

_BOTH = "breakable or tc_piecewise"


def run(r: Resolution) -> None:
    """Refuse backends outside the phase's list; say that full prefill is experimental."""
    for phase in PHASES:
        backend, allowed = r.graph[phase].backend, r.release.graph.backends[phase]
        if backend not in allowed:
            raise Refusal(
                "ValueError", f"--cuda-graph-config[{phase}].backend={backend!r} not allowed; allowed: {allowed}"
            )
    if r.graph["prefill"].backend == "full":
        stable = "breakable" if "tc_piecewise" not in r.release.graph.backends["prefill"] else _BOTH
        r.warn(
            "WARNING: cuda_graph_config[prefill].backend='full' is experimental. "
            f"Use {stable} for production workloads."
        )
