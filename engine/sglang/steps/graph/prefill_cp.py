"""Prefill context parallelism: where the breakable prefill graph works, it comes back."""

from __future__ import annotations

from engine.sglang.derived import attention_backends
from engine.sglang.resolution import Resolution


def supports_breakable_under_cp(r: Resolution) -> bool:
    """Whether the engine can capture the breakable prefill graph under this context parallelism.

    Source: SGLang 0.5.23, ``layers/cp/bcg``: zigzag with trtllm_mha; interleave with DSA, and then GLM-5-Next only
    (0.5.22, ``layers/cp/bcg.py``: interleave with DeepSeek V4's backend; before it zigzag alone).
    """
    args = r.args
    if not (args.enable_prefill_cp and args.pp_size == 1 and args.attn_cp_size == args.tp_size):
        return False
    prefill, _ = attention_backends(args)
    if (args.cp_strategy, prefill) == ("zigzag", "trtllm_mha"):
        return True
    if not r.since(0, 5, 23):
        return r.since(0, 5, 22) and (args.cp_strategy, prefill) == ("interleave", "dsv4")
    return (
        (args.cp_strategy, prefill) == ("interleave", "dsa")
        and args.dp_size == 1
        and args.ep_size == 1
        and args.attn_cp_size > 1
        and "Glm5NextForConditionalGeneration" in r.model.architectures
    )


def run(r: Resolution) -> None:
    """Once backend and topology are known: give supported launches the breakable graph, warn the others."""
    # Inside the function: the three run again here, and compatibility itself asks this module.
    from engine.sglang.steps.graph import compatibility, deepep, roles

    if not r.args.enable_prefill_cp:
        return
    if ("prefill", "backend") not in r.locked and supports_breakable_under_cp(r):
        r.set_graph("prefill", "backend", "breakable", "this prefill context parallelism supports the breakable graph")
        compatibility.run(r)
        roles.run(r)
        deepep.run(r)
    if r.graph["prefill"].backend != "breakable":
        r.warn("WARNING: Breakable prefill CUDA graph is not enabled for this prefill CP configuration.")
