"""A largest context of prefill graphs on a backend that does not know it.

## What it does
Looks for `--cuda-graph-prefill-max-context` (`prefill.max_context_size`) with a prefill graph while prefill attention
is not DeepSeek V4's backend.

## Why it is bad
The prefill runner asks the attention backend for metadata of a fixed context when it is built, and raises a
`ValueError` where it has none: after the weights are loaded.

## What to do
Leave the option out.

## Exceptions
With prefill graphs disabled no runner is built. Piecewise graphs ignore the value with a warning. Diffusion
language models bring metadata of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph


def check(examined: Examined) -> Iterator[Hit]:
    """A hit where a context limit meets a backend that does not implement it."""
    limit = examined.prefill.max_context_size
    if limit is None or examined.prefill.backend == "tc_piecewise" or not examined.captures_prefill:
        return
    if examined.args.dllm_algorithm is not None:
        return
    backend, _ = examined.attention_backends
    if backend == "dsv4":
        return
    message = (
        f"prefill.max_context_size is {limit}, and prefill attention resolves to {backend}, which prepares no metadata "
        f"of a fixed context: SGLang {examined.release} stops when it builds the prefill runner."
    )
    remedy = "Leave --cuda-graph-prefill-max-context out."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "max_context_size")
    yield Hit(finding=RULE.finding("error", message, remedy, suggestion=suggestion))


RULE = Rule(
    id="GG213",
    slug="prefill-max-context",
    title="prefill.max_context_size on an attention backend without it",
    since="0.1.0",
    releases=((0, 5, 21), (0, 5, 23)),
    covers=("MAX_CONTEXT_SIZE_DSV4_ONLY",),
    phase="prefill",
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        source(
            "0.5.23",
            "model_executor/runner/prefill_cuda_graph_runner.py, __init__",
            "a backend without fixed-context metadata raises a ValueError",
        ),
        source("0.5.23", "layers/attention/deepseek_v4_backend.py", "the one backend that supports it on CUDA"),
        report(38354, "faults of a named prefill graph that show only in capture", pull=True),
    ),
    check=check,
)
