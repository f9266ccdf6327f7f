"""Graphs of recurrent models with memory that moves or is shared.

## What it does
Looks for a state-carrying model with a graph and `--enable-symm-mem` (with tensor parallelism), or
`--enable-memory-saver`.

## Why it is bad
A symmetric-memory all-reduce that was captured into a graph gave slightly wrong numbers, which attention forgives and a
recurrent state keeps: workers answered with garbage until they were restarted. The memory saver's pause discards the
contents of what it pauses; state slots and what capture initialized come back undefined, and replays read them.

## What to do
Leave the option out for these models, or switch graphs off.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import without


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for each option that a recurrent state does not survive."""
    args = examined.args
    symmetric = args.enable_symm_mem and args.tp_size > 1
    if not symmetric and not args.enable_memory_saver:
        return
    if examined.decode.backend == "disabled" and examined.prefill.backend == "disabled":
        return
    if examined.resolution.model.state_carrying is None:
        return
    if symmetric:
        message = (
            f"--enable-symm-mem on a model with recurrent state: reports of SGLang {examined.release} and its "
            "neighbours show wrong numbers from the captured all-reduce, which the state keeps."
        )
        suggestion = without(examined.launch.arguments, examined.predicted.release, "enable_symm_mem")
        yield Hit(finding=RULE.finding("warning", message, "Leave --enable-symm-mem out.", suggestion=suggestion))
    if args.enable_memory_saver:
        message = (
            f"--enable-memory-saver on a model with recurrent state: after a pause and resume, graphs of SGLang "
            f"{examined.release} can read state whose contents the pause discarded."
        )
        remedy = "Do not pause this server, or switch graphs off for it."
        yield Hit(finding=RULE.finding("warning", message, remedy))


RULE = Rule(
    id="GG504",
    slug="recurrent-graph-memory",
    title="graphs of state-carrying models with symmetric memory or the memory saver",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("MAMBA_RADIX_STATE",),
    phase="decode",
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(29946, "a captured symmetric-memory all-reduce corrupts the state of Qwen3.5 on eight H100", pull=True),
        report(33037, "symmetric memory under graphs is forced off on Kimi hybrids", pull=True),
        report(32718, "a pause discards what graphs initialized at capture, and replays consume garbage", pull=True),
        source(
            "0.5.18", "arg_groups/kimi_k3_hook.py", "the engine itself takes symmetric memory off a recurrent model"
        ),
    ),
    check=check,
)
