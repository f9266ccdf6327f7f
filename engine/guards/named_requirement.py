"""Refusals that name the option they require.

## What it does
Looks at launches that the engine refuses while the arguments resolve with a message that names an option it requires:
a switch, a value, graphs that have to be off. Elastic expert parallelism is the case with the most of them.

## Why it is bad
The engine stops at the first requirement, and after that is met at the next: each one costs a start. The default
breakable prefill graph alone is enough for elastic scale-up to be refused.

## What to do
Use the suggested launch: it meets this requirement and those that follow.

## Exceptions
Where a requirement names no value there is no suggestion.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph, with_option
from engine.launch import PHASES

_OFF = re.compile(r"requires (?:(decode) and )?(prefill) CUDA graphs? to be disabled")
_OPTION = re.compile(r"requires (--[a-z0-9-]+)(?: ([a-z0-9_.]+))?")
_EQUAL = re.compile(r"requires (\w+) == (\w+) ")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where the message names something that can be written."""
    error = examined.predicted.prediction.error
    if error is None or error.stage == "parse" or "requires" not in error.message:
        return
    suggestion = _met(examined, error.message)
    if suggestion is None:
        return
    message = f"SGLang {examined.release} refuses this launch, and says what it requires: {error.message}"
    finding = RULE.finding(
        "error", message, "Use the suggested launch, or drop what asks for it.", suggestion=suggestion
    )
    graphs = _OFF.search(error.message) is not None
    yield Hit(finding=finding if graphs else dataclasses.replace(finding, covers=()))


def _met(examined: Examined, message: str) -> tuple[str, ...] | None:
    """The launch with the requirement met; None where the message does not say how."""
    arguments, release = examined.launch.arguments, examined.predicted.release
    if found := _OFF.search(message):
        for phase in PHASES:
            if phase in found.groups():
                arguments = with_graph(arguments, release, phase, "backend", "disabled")
        return arguments
    if (found := _OPTION.search(message)) and (option := release.options.by_string.get(found[1])):
        if option.nargs == 0:
            return with_option(arguments, release, option.dest)
        value = found[2]
        known = value is not None and (value in option.choices if option.choices else value.isdigit())
        return with_option(arguments, release, option.dest, value) if known else None
    if (found := _EQUAL.search(message)) and examined.predicted.resolution is not None:
        value = getattr(examined.args, found[2], None)
        return None if value is None else with_option(arguments, release, found[1], value)
    return None


RULE = Rule(
    id="GG903",
    slug="named-requirement",
    title="a refusal that names what it requires, a prefill graph switched off for one",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("FORCED_BOTH_DISABLED",),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(33723, "features that refuse graphs or switch them off", pull=True),
        source(
            "0.5.23",
            "arg_groups/parallel_hook.py",
            "scale-up requires the prefill graph to be disabled, and a list of options",
        ),
    ),
    check=check,
    refusals=True,
)
