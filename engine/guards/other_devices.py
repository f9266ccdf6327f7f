"""Devices other than CUDA.

## What it does
Looks for `--device` with anything but `cuda`.

## Why it is bad
Prefill graphs are off by default outside CUDA, XPU captures only full decode graphs, and ROCm up to 7.2.0 has failed
in capture on several GPUs. Graphgate answers for CUDA machines: what it predicts of graphs does not hold there.

## What to do
Read the release's notes for that device; switch graphs off for a first run.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source


def check(examined: Examined) -> Iterator[Hit]:
    """A hit for a device that is not CUDA."""
    device = str(examined.args.device or "cuda").partition(":")[0]
    if device == "cuda":
        return
    wrong = device == "xpu" and examined.decode.backend not in ("full", "disabled")
    message = (
        f"XPU captures only full decode graphs, and decode graphs resolve to {examined.decode.backend}."
        if wrong
        else f"--device {device}: SGLang {examined.release} captures other graphs there, prefill none by default."
    )
    remedy = "Write --cuda-graph-backend-decode full." if wrong else "Switch graphs off for a first run on this device."
    yield Hit(finding=RULE.finding("error" if wrong else "warning", message, remedy))


RULE = Rule(
    id="GG801",
    slug="other-devices",
    title="graphs on devices other than CUDA",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 23)),
    covers=("ROCM_NPU_XPU",),
    phase=None,
    backend=None,
    severity="warning",
    confidence="certain",
    evidence=(
        report(23580, "capture on ROCm"),
        report(28173, "prefill graphs outside CUDA are off by default", pull=True),
        source(
            "0.5.23",
            "model_executor/runner_backend/utils.py, resolve_decode_backend",
            "XPU supports the full decode backend only",
        ),
    ),
    check=check,
)
