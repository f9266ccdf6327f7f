"""DeepEP: its normal mode cannot be captured, so both phases run without CUDA graphs."""

from __future__ import annotations

from engine.launch import PHASES
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> None:
    """CuteDSL experts take low latency only; normal mode switches every CUDA graph off, even one asked for by name."""
    args = r.args
    if args.moe_runner_backend == "flashinfer_cutedsl" and r.since(0, 5, 17):
        if args.deepep_mode == "auto":
            r.set("deepep_mode", "low_latency", "flashinfer_cutedsl has no handler for DeepEP's normal dispatch")
            r.warn(
                "WARNING: Forcing --deepep-mode low_latency: flashinfer_cutedsl FP4 MoE has no DeepEP normal-dispatch "
                "handler, so deepep auto mode would crash during prefill. low_latency covers both prefill and decode."
            )
        elif args.deepep_mode == "normal":
            raise invalid(
                "flashinfer_cutedsl FP4 MoE only supports DeepEP low_latency dispatch (masked layout). DeepEP normal "
                "(prefill) dispatch has no CuteDSL FP4 handler. Pass --deepep-mode low_latency or auto."
            )
    if args.deepep_mode == "normal":
        r.warn("WARNING: Cuda graph is disabled because deepep_mode=`normal`")
        for phase in PHASES:
            r.set_graph(phase, "backend", "disabled", "DeepEP's normal dispatch cannot be captured")
