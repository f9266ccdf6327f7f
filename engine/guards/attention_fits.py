"""Attention backends that the model or the GPU does not allow.

## What it does
Looks for prefill or decode attention on a backend that refuses to be built: `trtllm_mla`, `cutedsl_mla` and
`tokenspeed_mla` without MLA, `trtllm_mha` and `hpc_ops` with MLA, `hpc_ops` with drafting, and `fa3` outside compute
capability 8.x (without MLA) and 9.x.

## Why it is bad
The arguments resolve, and the backend is built only after the weights are loaded, before any graph is captured:
minutes of start-up end in a `ValueError` or an `AssertionError`.

## What to do
Leave the attention backend to the engine, or name one that fits.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, source
from engine.guards.words import without
from engine.sglang.derived import uses_mla
from engine.sglang.platform import platform_of

_MLA_ONLY = ("trtllm_mla", "cutedsl_mla", "tokenspeed_mla")
_NO_MLA = ("trtllm_mha", "hpc_ops")
_OPTIONS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for each of the two backends that cannot be built."""
    for backend in dict.fromkeys(examined.attention_backends):
        why = None if backend is None else _refusal(examined, backend)
        if why is None:
            continue
        message = f"Attention on {backend}, {why}: SGLang {examined.release} stops after the weights are loaded."
        suggestion = without(examined.launch.arguments, examined.predicted.release, *_OPTIONS)
        finding = RULE.finding(
            "error", message, "Leave the attention backend to the engine, or name one that fits.", suggestion=suggestion
        )
        yield Hit(finding=finding)


def _refusal(examined: Examined, backend: str) -> str | None:
    if backend in _MLA_ONLY:
        return None if uses_mla(examined.resolution) else "which serves MLA models only"
    if backend in _NO_MLA:
        if uses_mla(examined.resolution):
            return "which serves models without MLA only"
        drafting = backend == "hpc_ops" and examined.args.speculative_algorithm is not None
        return "which does not support speculative decoding" if drafting else None
    if backend == "fa3":
        major = platform_of(examined.gpu).major
        if major != 9 and (major != 8 or uses_mla(examined.resolution)):
            return f"which does not run on {examined.gpu.name}" + (" with MLA" if major == 8 else "")
    return None


RULE = Rule(
    id="GG217",
    slug="attention-backend-fits",
    title="an attention backend that the model or the GPU does not allow",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=(),
    phase=None,
    backend=None,
    severity="error",
    confidence="certain",
    evidence=(
        source(
            "0.5.23",
            "layers/attention/attention_registry.py",
            "what each backend asserts of the model and of the GPU; so in every release from 0.5.14 on",
        ),
    ),
    check=check,
)
