"""What a capture lets one expect of the whole model, for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from engine.capture.estimate import Estimate
from service.cli.tables import table
from service.cli.words import clean, wrapped

_KIB, _MIB = 1024, 1024 * 1024


def estimate_lines(estimate: Estimate, *, verbose: bool) -> Iterator[str]:
    """The estimate; ``verbose``: with its rule."""
    layers = "; ".join(f"{count} {sort}" for sort, count in sorted(estimate.whole.items()))
    yield f"Estimates for the whole model, extrapolated from the scaled one ({clean(layers)}):"
    sizes = [f"cache {estimate.cache_bytes_per_token / _KIB:.1f} KiB a token"] if estimate.cache_bytes_per_token else []
    if estimate.state_bytes_per_request:
        state = estimate.state_bytes_per_request / _MIB
        sizes.append(f"state {state:.1f} MiB a request, {estimate.state_bytes / _MIB:.1f} MiB for the largest decode")
    if sizes:
        yield f"  {'; '.join(sizes)}"
    rows = [
        (
            phase,
            str(graph.size),
            f"{1e3 * graph.capture_s:.1f}",
            f"{graph.bytes / _MIB:.2f}",
            f"{1e3 * graph.replay_s:.2f}",
            f"{1e3 * graph.eager_s:.2f}",
        )
        for phase, graphs in estimate.phases.items()
        for graph in graphs
    ]
    head = ("phase", "size", "capture ms", "MiB", "replay ms", "eager ms")
    yield from ("  " + line for line in table(head, rows).splitlines())
    if verbose:
        yield from wrapped(clean(estimate.rule), indent="  ", hanging="    ")
