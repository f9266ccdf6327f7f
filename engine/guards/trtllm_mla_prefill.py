"""Prefill graphs on trtllm_mla.

## What it does
Looks for a breakable or piecewise prefill graph while prefill attention resolves to `trtllm_mla`, which Blackwell
takes for MLA models by default. The engine switches its default graph off for `DeepseekV3ForCausalLM` only; there a
note says so.

## Why it is bad
Under a captured prefill graph the model uses absorbed MLA, for which this backend has no kernel of variable length.
It falls back to one that converts the layer's whole KV pool in every forward: with an FP8 cache the time to the first
token of Kimi-K2.6 nearly tripled.

## What to do
Switch prefill graphs off for this launch: `--cuda-graph-backend-prefill disabled`.

## Exceptions
Sparse attention (DSA) does not use this backend for prefill.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph


def check(examined: Examined) -> Iterator[Hit]:
    """A warning where the graph stays, a note where the engine switched it off."""
    backend = examined.prefill.backend
    if backend == "disabled":
        switched = examined.switched_off.get("prefill")
        if switched is not None and "trtllm_mla" in switched.why:
            message = f"SGLang {examined.release} switches its default prefill graph off: {switched.why}."
            yield Hit(finding=RULE.finding("note", message, "Nothing to do: prefill runs without graphs."))
        return
    if backend == "full" or examined.attention_backends[0] != "trtllm_mla":
        return
    message = (
        f"Prefill graphs {backend} on trtllm_mla: in SGLang {examined.release} a captured prefill falls back to a "
        "slower kernel that touches the whole KV pool of each layer."
    )
    remedy = "Write --cuda-graph-backend-prefill disabled."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "disabled")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG211",
    slug="trtllm-mla-prefill",
    title="a prefill graph that takes MLA off the trtllm_mla kernel",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("TRTLLM_MLA_PREFILL_GRAPH",),
    phase="prefill",
    backend=None,
    severity="warning",
    confidence="certain",
    evidence=(
        report(32655, "Kimi-K2.6 on GB300: a captured prefill graph regresses prefill"),
        report(31198, "trtllm_mla and prefill graphs", pull=True),
        source(
            "0.5.23",
            "arg_groups/cuda_graph_hook.py, disable_prefill_cuda_graph_for_deepseek_trtllm_mla",
            "one architecture alone is switched off",
        ),
    ),
    check=check,
)
