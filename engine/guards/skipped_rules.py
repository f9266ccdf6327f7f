"""Rules of the engine that a named prefill backend skips.

## What it does
Looks for a breakable prefill graph that was asked for by name where one of the release's own rules would have
switched the default off, and no guard of its own looks at that rule: MLA attention and Nemotron-H until 0.5.17, LoRA,
attention data parallelism and MoE all-to-all backends until 0.5.16.

## Why it is bad
The engine evaluates no rule once the backend is named. Some of its rules are caution; others stand for graphs that
fail in capture or answer wrongly, and a later release took the rule away only together with a repair.

## What to do
Leave the prefill backend to the engine, or launch with a release that dropped the rule.

## Exceptions
Context parallelism, multimodal models, DeepSeek V4, Kimi delta attention, two-batch overlap and unvalidated all-to-
all backends have guards of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.steps.graph.compatibility import breakable_incompatibility

_OWN_GUARD = ("context parallel", "multimodal", "DeepSeek-V4", "KDA", "two-batch", "unvalidated")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit with the rule that was skipped."""
    if examined.prefill.backend != "breakable" or not examined.named("prefill"):
        return
    skipped = breakable_incompatibility(examined.resolution)
    if skipped is None or any(words in skipped for words in _OWN_GUARD):
        return
    message = (
        f"A breakable prefill graph is asked for by name, which skips a rule of SGLang {examined.release}: it is "
        f"incompatible with {skipped}."
    )
    remedy = "Leave the prefill backend to the engine, which runs this launch's prefill without graphs."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG216",
    slug="skipped-rules",
    title="a breakable prefill graph asked for by name where the release switches its default off",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 17)),
    covers=("LOCK_BYPASSES_RULES",),
    phase="prefill",
    backend="breakable",
    severity="warning",
    confidence="likely",
    evidence=(
        report(38354, "an explicit backend skips every rule, the hard ones too", pull=True),
        source(
            "0.5.16",
            "server_args.py, _disable_breakable_cudagraph_if_incompatible",
            "the rules; an explicit backend returns before them",
        ),
    ),
    check=check,
)
