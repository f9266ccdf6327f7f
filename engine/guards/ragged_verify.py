"""Compact ragged verification with what it does not support.

## What it does
Looks for `SGLANG_RAGGED_VERIFY_MODE=compact` with drafting and a decode graph together with two-batch overlap, LoRA,
`--disable-cuda-graph-padding`, FlashInfer, or a state-carrying model on Triton.

## Why it is bad
The decode runner or the attention backend raises when it captures the verification graph, after the weights are
loaded.

## What to do
Set `SGLANG_RAGGED_VERIFY_MODE=static`, the default, or leave the other feature out.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where compact verification meets something that refuses it."""
    if examined.launch.environment.get("SGLANG_RAGGED_VERIFY_MODE", "").lower() != "compact":
        return
    args = examined.args
    if args.speculative_algorithm is None or examined.decode.backend == "disabled":
        return
    for what in _conflicts(examined):
        message = (
            f"SGLANG_RAGGED_VERIFY_MODE=compact with {what}: SGLang {examined.release} stops when it captures the "
            "verification graph."
        )
        yield Hit(finding=RULE.finding("error", message, "Set SGLANG_RAGGED_VERIFY_MODE=static."))


def _conflicts(examined: Examined) -> Iterator[str]:
    args = examined.args
    if args.enable_two_batch_overlap:
        yield "--enable-two-batch-overlap"
    if args.enable_lora or args.lora_paths:
        yield "LoRA"
    if args.disable_cuda_graph_padding:
        yield "--disable-cuda-graph-padding"
    if examined.attention_backends[1] == "flashinfer":
        yield "the FlashInfer attention backend"
    if examined.attention_backends[1] == "triton" and examined.resolution.model.state_carrying is not None:
        yield "a state-carrying model on Triton"


RULE = Rule(
    id="GG502",
    slug="ragged-verify-compact",
    title="SGLANG_RAGGED_VERIFY_MODE=compact with what it does not support",
    since="0.1.0",
    releases=((0, 5, 17), (0, 5, 23)),
    covers=("RAGGED_VERIFY_COMPACT",),
    phase="decode",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        report(36481, "an illegal memory access of the Triton backend in verification capture on Qwen3.5"),
        report(33412, "compact verification dies in decode capture on compute capability 12.0"),
        source(
            "0.5.23",
            "model_executor/runner/decode_cuda_graph_runner.py, __init__",
            "two-batch overlap, LoRA and padding switched off are refused",
        ),
        source(
            "0.5.23",
            "layers/attention/flashinfer_backend.py, init_forward_metadata_out_graph",
            "FlashInfer refuses ragged verification in a graph",
        ),
    ),
    check=check,
)
