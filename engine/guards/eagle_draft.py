"""Draft graphs of EAGLE and multi-token prediction that have failed.

## What it does
Looks for EAGLE-like drafting with a decode graph under a condition that reports tie to faults of the draft graphs: a
hybrid sliding-window model on Triton (until 0.5.22), a hierarchical cache, or very many draft tokens.

## Why it is bad
Graphs of the draft phase are outside the per-phase configuration: their sizes are the decode graph's. On a hybrid
sliding-window model Triton's draft-extend graph has no window indices and reads past its pool. With a hierarchical
cache the draft's cache and its graph disagree. Very many draft tokens overflow what the graph was sized for.

## What to do
Set `SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH=1` (0.5.16 and newer): draft extension runs eagerly, all other graphs
stay.

## Exceptions
The variable set already silences the rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source

_EAGLE = ("EAGLE", "EAGLE3", "NEXTN")
_MANY = 64
"""Draft tokens a step beyond which reports begin."""


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for each condition that holds."""
    args = examined.args
    if args.speculative_algorithm not in _EAGLE or examined.decode.backend == "disabled":
        return
    if examined.launch.environment.get("SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH", "").lower() in ("1", "true"):
        return
    for why in _conditions(examined):
        message = f"{args.speculative_algorithm} drafting in graphs: {why} (SGLang {examined.release})."
        remedy = "Set SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH=1; all other graphs stay."
        yield Hit(finding=RULE.finding("warning", message, remedy))


def _conditions(examined: Examined) -> Iterator[str]:
    args = examined.args
    if not examined.since(0, 5, 23) and examined.resolution.model.is_hybrid_swa:
        if "triton" in examined.attention_backends:
            yield "on a hybrid sliding-window model Triton's draft-extend graph has no window indices"
        elif not examined.since(0, 5, 15):
            yield "a report shows the draft graph of a sliding-window model failing as the batch shrinks"
    if args.enable_hierarchical_cache:
        yield "with a hierarchical cache, reports show the draft's graph and its cache disagreeing"
    if (args.speculative_num_draft_tokens or 0) > _MANY:
        yield f"{args.speculative_num_draft_tokens} draft tokens a step are more than the graph is sized for"


RULE = Rule(
    id="GG501",
    slug="eagle-draft-graph",
    title="draft graphs of EAGLE and multi-token prediction under known conditions",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("EAGLE_DRAFT_GRAPH",),
    phase="decode",
    backend=None,
    severity="warning",
    confidence="likely",
    evidence=(
        report(29858, "the draft-extend graph lacks window buffers on hybrid sliding-window models", pull=True),
        report(
            28569, "EAGLE3 on gpt-oss-120b, a sliding-window model: the draft graph's replay hits an illegal access"
        ),
        report(19177, "a hierarchical cache, drafting and graphs: illegal memory access", pull=True),
        source(
            "0.5.22",
            "layers/attention/triton_backend.py",
            "draft extension is captured with window_kv_indices None; 0.5.23 fills them",
        ),
    ),
    check=check,
)
