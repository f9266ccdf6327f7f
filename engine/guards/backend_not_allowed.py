"""Graph backends that the release does not allow for a phase.

## What it does
Looks at launches that the engine refuses because a phase's graph backend is none that the release allows, such as
full prefill on 0.5.14.

## Why it is bad
The engine stops while it resolves the arguments. Each phase has a list of its own, and the lists change with
releases.

## What to do
Use the suggested launch, which takes the release's default for that phase.

## Exceptions
None.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.launch import PHASES

_SAYS = re.compile(r"--cuda-graph-config\[(\w+)\]\.backend='([^']*)' not allowed")
_COVERED = {("prefill", "full"): "FULL_PREFILL_EXPERIMENTAL", ("prefill", "tc_piecewise"): "TC_PIECEWISE_LEGACY"}


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for that refusal, with the release's default instead."""
    error = examined.predicted.prediction.error
    found = _SAYS.search(error.message) if error is not None else None
    if found is None:
        return
    for phase in PHASES:
        if phase != found[1]:
            continue
        release = examined.predicted.release
        default = str(release.graph.defaults[phase]["backend"])
        allowed = ", ".join(release.graph.backends[phase])
        message = f"SGLang {release.text} has no {found[2]} {phase} graphs; it allows {allowed}."
        remedy = f"Write --cuda-graph-backend-{phase} {default}."
        suggestion = with_graph(examined.launch.arguments, release, phase, "backend", default)
        finding = RULE.finding("error", message, remedy, suggestion=suggestion, phase=phase)
        name = _COVERED.get((phase, found[2]))
        yield Hit(finding=dataclasses.replace(finding, covers=() if name is None else (name,)))


RULE = Rule(
    id="GG905",
    slug="backend-not-allowed",
    title="a graph backend that the release does not allow for that phase",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("FULL_PREFILL_EXPERIMENTAL", "TC_PIECEWISE_LEGACY"),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(35588, "full prefill came after 0.5.14 and stayed experimental", pull=True),
        source("0.5.14", "server_args.py", "the backends that each phase allows; full is none of prefill's"),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, validate_cuda_graph_config",
            "a backend outside the phase's list is refused",
        ),
    ),
    check=check,
    refusals=True,
)
