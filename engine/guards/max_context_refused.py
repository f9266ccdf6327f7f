"""A largest context of prefill graphs that the engine refuses.

## What it does
Looks at launches that the engine refuses because `--cuda-graph-prefill-max-context` is not positive, or exceeds the
model's context once rounded up to whole pages.

## Why it is bad
The engine stops while it resolves the arguments.

## What to do
Leave the option out, or give a positive multiple of the page size within the model's context.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, source
from engine.guards.words import with_graph

_SAYS = "--cuda-graph-prefill-max-context"


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for that refusal, with the option left out."""
    error = examined.predicted.prediction.error
    if error is None or error.stage == "parse" or _SAYS not in error.message:
        return
    message = f"SGLang {examined.release} refuses the largest context of prefill graphs: {error.message}"
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "max_context_size")
    yield Hit(finding=RULE.finding("error", message, f"Leave {_SAYS} out.", suggestion=suggestion))


RULE = Rule(
    id="GG906",
    slug="max-context-refused",
    title="a prefill.max_context_size that is not positive or exceeds the model",
    since="0.1.0",
    releases=((0, 5, 20), (0, 5, 23)),
    covers=("MAX_CONTEXT_SIZE_DSV4_ONLY",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, finalize_cuda_graph_prefill_max_context",
            "the size is rounded up to whole pages and held against the model's context",
        ),
    ),
    check=check,
    refusals=True,
)
