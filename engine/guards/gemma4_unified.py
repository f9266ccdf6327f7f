"""Gemma 4 in its unified form on releases that cannot load it.

## What it does
Looks for `Gemma4UnifiedForConditionalGeneration` on SGLang 0.5.18 to 0.5.20.

## Why it is bad
The parent class learned to ask whether the language-model head is tied, and the unified class, which builds itself,
does not set the answer. The server stops with an `AttributeError`, with or without graphs.

## What to do
Launch with 0.5.17, or with 0.5.21 or newer.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source

_ARCHITECTURE = "Gemma4UnifiedForConditionalGeneration"


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for the unified class."""
    if examined.resolution.model.arch != _ARCHITECTURE:
        return
    message = (
        f"SGLang {examined.release} cannot run {_ARCHITECTURE}: its class does not set lm_head_is_tied, which its "
        "parent reads, and the server stops with an AttributeError."
    )
    yield Hit(finding=RULE.finding("error", message, "Launch with 0.5.17, or with 0.5.21 or newer."))


RULE = Rule(
    id="GG220",
    slug="gemma4-unified",
    title="Gemma4Unified on releases whose class lacks an attribute",
    since="0.1.0",
    releases=((0, 5, 18), (0, 5, 20)),
    covers=("SPECIAL_ARCH_DEFAULTS",),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(38673, "defaults and defects of special architectures"),
        source("0.5.20", "models/gemma4_mm.py", "the parent reads lm_head_is_tied"),
        source(
            "0.5.21", "models/gemma4_unified.py, __init__", "the unified class sets lm_head_is_tied; 0.5.20 does not"
        ),
    ),
    check=check,
)
