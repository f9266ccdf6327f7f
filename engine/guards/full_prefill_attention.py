"""Full prefill graphs on an attention backend that cannot prepare them.

## What it does
Looks for a launch whose prefill graphs resolve to the backend `full` while prefill attention resolves to anything but
FlashAttention (`fa3`, `fa4`) or FlashInfer outside MLA.

## Why it is bad
A full prefill graph refreshes its attention metadata outside the graph, for a plain extend batch. Only FlashAttention
and FlashInfer's MHA backend know that batch; the others know decode, target verification and draft extension, and raise
for anything else. The server has loaded its weights by then.

## What to do
Name the breakable graph for prefill, or leave the prefill backend to the engine. Another way is
`--prefill-attention-backend fa3` (Hopper), or `flashinfer` for a model without MLA. Decode graphs are not affected.

## Exceptions
Diffusion language models prepare their batches themselves. Hybrid linear-attention models have a rule of their own,
[GG101](GG101-hybrid-full-prefill.md). 0.5.14 has no full prefill.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule
from engine.guards.words import with_graph
from engine.sglang.derived import uses_mla
from engine.verdict import Evidence

_ALWAYS = ("fa3", "fa4")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where full prefill meets an attention backend without metadata for it."""
    if examined.prefill.backend != "full" or not examined.captures_prefill:
        return
    backend, _ = examined.attention_backends
    resolution = examined.resolution
    if backend is None or backend in _ALWAYS or examined.args.dllm_algorithm is not None:
        return
    if backend == "flashinfer" and not uses_mla(resolution):
        return
    carrying = resolution.model.state_carrying
    if carrying is not None and not carrying.inkling:
        return
    shown = "flashinfer with MLA" if backend == "flashinfer" else backend
    message = (
        f"Prefill graphs resolve to full, and prefill attention to {shown}, which prepares no graph metadata for a "
        f"plain prefill batch: SGLang {examined.release} stops in capture, after the weights are loaded. Full prefill "
        "needs fa3, fa4, or FlashInfer without MLA."
    )
    remedy = "Write --cuda-graph-backend-prefill breakable; decode graphs are not affected."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "breakable")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG201",
    slug="full-prefill-attention",
    title="full prefill graphs on an attention backend that cannot prepare them",
    since="0.1.0",
    releases=((0, 5, 15), (0, 5, 23)),
    covers=("FULL_PREFILL_ATTN_BACKEND",),
    phase="prefill",
    backend="full",
    severity="error",
    confidence="certain",
    evidence=(
        Evidence(
            kind="report",
            reference="https://github.com/sgl-project/sglang/pull/27988",
            says="full prefill graphs and the attention backends that serve them",
        ),
        Evidence(
            kind="report",
            reference="https://github.com/sgl-project/sglang/pull/37418",
            says="full prefill under a unified memory pool is left to FlashAttention",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/layers/attention/triton_backend.py, init_forward_metadata_out_graph",
            says="decode, target verification and draft extension have metadata; a plain extend batch raises",
        ),
        Evidence(
            kind="source",
            reference="sglang 0.5.23: srt/layers/attention/flashinfer_backend.py, init_forward_metadata_out_graph",
            says="FlashInfer's MHA backend has a branch for a plain extend batch under a full prefill graph",
        ),
    ),
    check=check,
)
