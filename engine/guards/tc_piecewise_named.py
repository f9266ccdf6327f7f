"""Piecewise prefill graphs asked for where the engine would drop them.

## What it does
Looks for `tc_piecewise` prefill graphs that were asked for by name together with what the release's own rules switch
them off for: architectures on its deny list, attention data parallelism, a hierarchical cache, CPU offload,
pipelines, an all-to-all backend, deterministic inference, full torch.compile, context parallelism.

## Why it is bad
Naming the backend skips the rules. With a hierarchical cache a deployment captured for 23 minutes and then recompiled
on every request, because the cache is attached after capture; on denied architectures compilation fails or prefill is
wrong.

## What to do
Use the breakable prefill graph, which replaced this one; 0.5.22 has no `tc_piecewise` any more.

## Exceptions
None.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.guards.base import Examined, Hit, Rule, report, source
from engine.guards.words import with_graph
from engine.sglang.derived import attn_dp_enabled


def check(examined: Examined) -> Iterator[Hit]:
    """A hit with the first rule that was skipped."""
    if examined.prefill.backend != "tc_piecewise" or not examined.named("prefill"):
        return
    skipped = next(_skipped(examined), None)
    if skipped is None:
        return
    message = (
        f"tc_piecewise prefill graphs are asked for by name, which skips a rule of SGLang {examined.release} against "
        f"them: {skipped}."
    )
    remedy = "Write --cuda-graph-backend-prefill breakable."
    suggestion = with_graph(examined.launch.arguments, examined.predicted.release, "prefill", "backend", "breakable")
    yield Hit(finding=RULE.finding("warning", message, remedy, suggestion=suggestion))


def _skipped(examined: Examined) -> Iterator[str]:
    args, model = examined.args, examined.resolution.model
    conditions: tuple[tuple[object, str], ...] = (
        (model.is_piecewise_cuda_graph_disabled_model, "the architecture is on its deny list"),
        (model.state_carrying is not None, "the model carries recurrent state"),
        (args.enable_hierarchical_cache or args.cpu_offload_gb > 0, "a hierarchical cache or CPU offload"),
        (attn_dp_enabled(args), "attention data parallelism"),
        (args.enable_torch_compile, "full torch.compile"),
        (args.pp_size > 1, "pipeline parallelism"),
        (args.moe_a2a_backend != "none", "a MoE all-to-all backend"),
        (args.enable_deterministic_inference, "deterministic inference"),
        (args.attn_cp_size > 1 or args.dcp_size > 1, "context parallelism"),
    )
    for holds, name in conditions:
        if holds:
            yield name


RULE = Rule(
    id="GG215",
    slug="tc-piecewise-named",
    title="tc_piecewise asked for by name where the release drops it by default",
    since="0.1.0",
    releases=((0, 5, 14), (0, 5, 21)),
    covers=("TC_PIECEWISE_LEGACY", "LOCK_BYPASSES_RULES"),
    phase="prefill",
    backend="tc_piecewise",
    severity="warning",
    confidence="likely",
    evidence=(
        report(38354, "an explicit piecewise backend skips the rule against a hierarchical cache", pull=True),
        report(22475, "piecewise graphs on hybrid models", pull=True),
        report(18130, "piecewise graphs fail where rules are skipped"),
        source(
            "0.5.21",
            "arg_groups/cuda_graph_hook.py, disable_tc_piecewise_cudagraph_if_incompatible",
            "the rules that an explicit backend skips",
        ),
    ),
    check=check,
)
