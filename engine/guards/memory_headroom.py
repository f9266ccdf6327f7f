"""A static memory fraction that leaves graphs no room.

## What it does
Looks for a `--mem-fraction-static` that the operator wrote and that leaves less of the GPU than the graphs need by
the engine's own estimate (2 MiB a decode request; under attention data parallelism 3 MiB more for each request of
each group; 8 MiB a prefill bucket, 1.5 GiB for MLA; 1 GiB for DeepEP) and 1 GiB for everything else; or that is 0.95
and more.

## Why it is bad
Graphs are captured after weights and KV cache have taken their share. What is left is also what activations of eager
batches need: capture runs out of memory, or the first long prompt does.

## What to do
Lower `--mem-fraction-static` (the engine's own default is in the prediction), or capture fewer and smaller graphs
with `--cuda-graph-max-bs-decode` and `--cuda-graph-max-bs-prefill`.

## Exceptions
Fractions that the engine chose reserve for graphs already. Where graphs of both phases are off nothing is captured.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import without
from engine.sglang.derived import attn_dp_enabled, uses_mla

_DECODE_MIB, _GROUP_MIB, _BUCKET_MIB, _MLA_MIB, _DEEPEP_MIB = 2, 3, 8, 1536, 1024


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where a written fraction leaves less than graphs are estimated to take."""
    if "mem_fraction_static" not in examined.resolution.given:
        return
    fraction = examined.args.mem_fraction_static
    needed = _graphs_mib(examined)
    if fraction is None or not needed:
        return
    left = examined.gpu.memory_mib * (1 - fraction)
    tight, beside = examined.parameter(RULE, "largest_fraction"), examined.parameter(RULE, "beside_graphs_mib")
    if left >= needed + beside and fraction < tight:
        return
    message = (
        f"--mem-fraction-static {fraction} leaves {left:,.0f} MiB of {examined.gpu.memory_mib:,} MiB on "
        f"{examined.gpu.name} for graphs, estimated at {needed:,.0f} MiB, and for the activations of eager batches."
    )
    remedy = "Leave --mem-fraction-static to the engine, or lower it; or capture smaller graphs."
    suggestion = without(examined.launch.arguments, examined.predicted.release, "mem_fraction_static")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


def _graphs_mib(examined: Examined) -> float:
    """The engine's own estimate, in MiB; 0 where nothing is captured."""
    args, decode, prefill = examined.args, examined.decode, examined.prefill
    needed = 0.0
    if decode.backend != "disabled":
        largest = decode.max_bs or 0
        needed += largest * _DECODE_MIB
        if attn_dp_enabled(args):
            needed += largest * max(1, args.attn_dp_size) * _GROUP_MIB
        if args.moe_a2a_backend == "deepep":
            needed += _DEEPEP_MIB
    if prefill.backend != "disabled":
        needed += _MLA_MIB if uses_mla(examined.resolution) else len(prefill.bs or ()) * _BUCKET_MIB
    return needed


RULE = Rule(
    id="GG601",
    slug="memory-headroom",
    title="--mem-fraction-static that leaves too little for graph capture",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("MEMORY_HEADROOM",),
    phase=None,
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(31204, "with 2 GiB left capture made no progress; the gate was set at 4 GiB", pull=True),
        report(24453, "decode graphs of a wide deployment take 20 GB a rank"),
        report(10618, "capture runs out of memory"),
        source(
            "0.5.23",
            "arg_groups/memory_hook.py, handle_gpu_memory_settings",
            "what the engine reserves for graphs where no fraction is given",
        ),
    ),
    check=check,
    parameters={"largest_fraction": 0.95, "beside_graphs_mib": 1024},
)
