"""Captures over random shapes: family mix, layers, sizes, heads, request slots, pages, backends, allocation.

    python -m api_tests.capture.replay.random_jobs [--runs 200] [--first 0]

makes the captures of those seeds on the CPU and prints what came out; the exit status is 1 where one of them is not as
it must be: every graph equal to eager, and refused by the guard exactly where a recurrent layer's tables do not exist.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping

import torch

from api_tests.capture.inside import captured
from engine.capture.job import CaptureJob, CaptureOptions, PhasePlan
from engine.capture.report import PhaseReport
from engine.capture.shape import ModelShape
from engine.capture.style import Routing, Style
from engine.launch import Phase
from engine.models.facts import LayerKind

ATTENDING: tuple[LayerKind, ...] = ("attention", "sliding_attention", "chunked_attention")
RECURRENT: tuple[LayerKind, ...] = (
    "gdn",
    "kda",
    "mamba2",
    "mamba",
    "lightning",
    "shortconv",
    "attention+mamba2",
)
OTHER: tuple[LayerKind, ...] = ("mlp", "moe")
OF_ONE_MODEL: Mapping[str, LayerKind] = {
    "jet": "gdn",
    "bailing": "lightning",
    "inkling": "attention+shortconv",
    "zaya": "attention+shortconv",
    "eagle": "rwkv",
}
"""Variant -> the recurrent layers that it has kernels of its own for."""


def random_job(seed: int) -> CaptureJob:
    """The capture of that seed: tiny, and sound."""
    draw = random.Random(seed)  # noqa: S311 - shapes, not secrets
    kinds = tuple(
        draw.choice(draw.choice((ATTENDING, RECURRENT, RECURRENT, OTHER))) for _ in range(draw.choice((1, 2, 2, 3)))
    )
    variant = draw.choice((*OF_ONE_MODEL, *[""] * 10))
    if variant:
        kinds = (OF_ONE_MODEL[variant], *kinds[1:])
    kv_heads, key_heads = draw.choice((1, 2)), draw.choice((1, 2))
    experts = draw.choice((0, 0, 3))
    shape = ModelShape(
        architecture=None,
        family="",
        layer_kinds=kinds,
        hidden_size=draw.choice((8, 16, 24)),
        intermediate_size=draw.choice((8, 20)),
        vocab_size=draw.choice((17, 64)),
        num_heads=kv_heads * draw.choice((1, 2, 3)),
        num_kv_heads=kv_heads,
        head_dim=draw.choice((4, 8)),
        attention=draw.choice(("gqa", "gqa", "mla")),
        num_experts=experts,
        experts_per_token=min(experts, draw.choice((1, 2))),
        sliding_window=draw.choice((2, 5)),
        attention_chunk=draw.choice((3, 8)),
        linear_key_heads=key_heads,
        linear_value_heads=key_heads * draw.choice((1, 2)),
        linear_key_dim=draw.choice((4, 8)),
        linear_value_dim=draw.choice((4, 6)),
        linear_groups=draw.choice((1, key_heads)),
        state_size=draw.choice((3, 8)),
        conv_kernel=draw.choice((2, 3, 4)),
        q_lora_rank=draw.choice((0, 6)),
        kv_lora_rank=draw.choice((4, 8)),
        rope_dim=draw.choice((2, 4)),
        style=_style(draw, variant),
    )
    plans = (
        PhasePlan(
            phase="prefill",
            backend=draw.choice(("full", "full", "full", "breakable", "tc_piecewise")),
            sizes=_sizes(draw, 7),
            max_requests=draw.randint(1, 5),
        ),
        PhasePlan(phase="decode", backend=draw.choice(("full", "full", "breakable")), sizes=_sizes(draw, 5)),
    )
    return CaptureJob(
        id=str(seed),
        shape=shape,
        plans=plans,
        options=CaptureOptions(
            allocation=draw.choice(("per-phase", "per-phase", "decode-owned")), device="cpu", sizes=None
        ),
        seed=seed,
        page_size=draw.choice((1, 2, 4, 8)),
    )


def _style(draw: random.Random, variant: str) -> Style:
    """How the layers are parametrised: what published models differ in."""
    return Style(
        variant=variant,
        activation=draw.choice(("swiglu", "swiglu", "clamped_swiglu", "relu2")),
        rope=draw.choice(("halves", "pairs", "none")),
        head_norm=draw.choice((False, True)),
        output_gate=draw.choice((False, True)),
        sinks=draw.choice((False, True)),
        mamba2_norm=draw.choice(("whole", "grouped", "none")),
        mamba_norms=draw.choice(("none", "weighted", "weightless")),
        routing=Routing(
            scoring=draw.choice(("softmax", "sigmoid")),
            selection_bias=draw.choice((False, True)),
            shared=draw.choice(("none", "plain", "gated")),
        ),
    )


def _sizes(draw: random.Random, largest: int) -> tuple[int, ...]:
    return tuple(sorted(draw.sample(range(1, largest + 1), draw.choice((1, 1, 2)))))


def expected(job: CaptureJob) -> dict[Phase, str]:
    """What must come out: the guard refuses full prefill exactly where recurrent layers have no tables yet."""
    prefill = job.plan("prefill")
    assert prefill is not None
    stateful = {*RECURRENT, *OF_ONE_MODEL.values()}
    recurrent = any(kind in stateful for kind in job.shape.layer_kinds)
    untold = recurrent and prefill.backend == "full" and job.options.allocation == "decode-owned"
    return {"prefill": "guard_refused" if untold else "ok", "decode": "ok"}


def wrong(job: CaptureJob, phases: dict[Phase, PhaseReport]) -> list[str]:
    """What is not as it must be, in words."""
    found = []
    for phase, outcome in expected(job).items():
        report = phases[phase]
        if report.outcome != outcome:
            said = report.error.message if report.error else [r for g in report.graphs for r in g.replays if not r.ok]
            found.append(f"seed {job.seed}, {phase} of {job.shape.layer_kinds}: {report.outcome}, {said}")
    return found


def main() -> int:
    """Make the captures, and print the count of each outcome."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=200)
    reader.add_argument("--first", type=int, default=0)
    asked = reader.parse_args()
    torch.set_num_threads(1)
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    graphs = replays = 0
    started = time.monotonic()
    for seed in range(asked.first, asked.first + asked.runs):
        job = random_job(seed)
        phases = captured(job)
        problems += wrong(job, phases)
        for report in phases.values():
            outcomes[report.outcome] += 1
            graphs += len(report.graphs)
            replays += sum(len(graph.replays) for graph in report.graphs)
    print(
        f"{asked.runs} captures over random shapes in {time.monotonic() - started:.0f} s (emulated, on a CPU): "
        f"{graphs} graphs, {replays} replays compared with eager"
    )
    print("phases: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    print(f"not as they must be: {len(problems)}", *problems, sep="\n  ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
