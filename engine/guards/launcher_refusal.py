"""What the engine's launcher refuses after the arguments have resolved.

## What it does
Repeats the checks that the launcher makes on resolved arguments, before it starts its processes: widths that do not
divide, LoRA settings that contradict each other, chunk sizes off the page size, pipelines with drafting, watermarks.

## Why it is bad
Argument resolution accepts such a launch; the launcher then stops with an assertion or a `ValueError`. On a cluster
that is a container that restarts over and over.

## What to do
Change the option that the message names.

## Exceptions
None: the launcher makes these checks on every launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule
from engine.sglang.launching import launch_refusal
from engine.verdict import Evidence


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the launcher would refuse what resolved."""
    resolution = examined.predicted.resolution
    error = launch_refusal(resolution) if resolution is not None else None
    if error is None:
        return
    said = error.message or "no message"
    message = (
        f"The arguments resolve, but SGLang {examined.predicted.release.text} refuses to start with them "
        f"({error.type}): {said}"
    )
    yield Hit(finding=RULE.finding("error", message, "Change the option that the engine's message names."))


RULE = Rule(
    id="GG102",
    slug="launcher-refusal",
    title="arguments that resolve and that the launcher then refuses",
    since="0.1.0",
    releases=((0, 5, 23), (0, 5, 23)),
    covers=(),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/arg_groups/validation_hook.py, check_server_args",
            says="the launcher checks resolved arguments again before it starts its processes",
        ),
    ),
    check=check,
)
