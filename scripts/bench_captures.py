"""Captures: how long a graph takes to capture and to replay, by size, and eager against replay.

Three families, scaled down as every capture is, each verified before it is timed. Without a GPU these are operator
graphs on a CPU: the figures say what this house's recorder costs, and nothing about a GPU ("emulated").
"""

from __future__ import annotations

import argparse

from engine.capture.job import CaptureJob, job_for
from engine.capture.options import CaptureOptions
from engine.launch import Phase
from engine.models.catalogue import find
from engine.verdict import PhaseGraph

MODELS = {
    "attention": "meta-llama/Llama-3.1-8B-Instruct",
    "GDN": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Mamba-2": "ibm-granite/granite-4.0-h-tiny",
}
GRAPH: dict[Phase, PhaseGraph] = {
    "prefill": PhaseGraph(backend="full", bs=(4, 16, 64), full_prefill_max_req=4),
    "decode": PhaseGraph(backend="full", bs=(1, 4, 16)),
}


def options(reader: argparse._ArgumentGroup) -> None:
    """What can be asked of this section."""
    reader.add_argument("--capture-device", choices=("auto", "cpu", "cuda"), default="auto")


def job(family: str) -> CaptureJob:
    """The capture of that family's model: both phases full, each with tables of its own."""
    facts = find(MODELS[family])
    if facts is None:
        raise LookupError(f"The packaged catalogue has no {MODELS[family]}.")
    asked = CaptureOptions(allocation="per-phase", sizes=3)
    return job_for(id=family, facts=facts, graph=GRAPH, options=asked)


def run(asked: argparse.Namespace) -> None:
    """Measure and print."""
    import torch  # as late as this: the other sections need none
    from _capture_times import times

    from api_tests.capture.inside import set_up

    torch.set_num_threads(1)
    with_gpu = torch.cuda.is_available() and asked.capture_device != "cpu"
    device = torch.device("cuda" if with_gpu else "cpu")
    for family, model in MODELS.items():
        setup, phases = set_up(job(family), device)
        outcomes = ", ".join(f"{phase} {report.outcome}" for phase, report in phases.items())
        where = torch.cuda.get_device_name(device) if with_gpu else "one thread of a CPU"
        print(f"Captures, {setup.recorder.claim} on {where}: {family} ({model}), replay against eager: {outcomes}")
        print(f"  {'':<9}{'size':>5} {'capture':>11} {'eager':>11} {'replay':>11}   {'eager / replay'}")
        for row in times(setup, asked.rounds):
            print(
                f"  {row.phase:<9}{row.size:5d} {1000 * row.capture_s:8.1f} ms {1000 * row.eager_s:8.2f} ms "
                f"{1000 * row.replay_s:8.2f} ms   {row.ratio:6.2f} x"
            )
