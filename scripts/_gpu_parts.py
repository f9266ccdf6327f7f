"""The steps of ``gpu_check``: each makes captures, and says what came out and what is not as it must be."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _capture_times import times

from api_tests.capture.inside import captured, set_up
from api_tests.capture.jobs import job as small_job
from api_tests.capture.replay.faults import FAULTS
from api_tests.capture.replay.random_jobs import random_job, wrong
from engine.capture.job import CaptureJob, job_for
from engine.capture.options import Allocation, CaptureOptions, Device
from engine.capture.report import PhaseReport
from engine.capture.supervisor import Supervisor
from engine.launch import Phase
from engine.models.catalogue import find
from engine.models.facts import ModelFacts
from engine.verdict import PhaseGraph

MODELS = (
    "meta-llama/Llama-3.1-8B",
    "deepseek-ai/DeepSeek-V3.1",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3.5-35B-A3B",
    "jet-ai/Jet-Nemotron-2B",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "nvidia/Nemotron-H-8B-Base-8K",
    "ibm-granite/granite-4.0-h-tiny",
    "tiiuae/Falcon-H1-7B-Instruct",
    "tiiuae/falcon-mamba-7b",
    "MiniMaxAI/MiniMax-M1-80k",
    "mlx-community/Ring-mini-linear-2.0-4bit",
    "LiquidAI/LFM2-8B-A1B",
    "Zyphra/ZAYA1-8B",
)
"""One or more of every family, of the packaged catalogue."""

IN_WORKERS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-Next-80B-A3B-Instruct", "nvidia/Nemotron-H-8B-Base-8K")
"""Of these, the ones that are captured once more in a supervised process, which takes seconds to start."""

SIZES: Mapping[str, Mapping[Phase, tuple[int, ...]]] = {
    "cuda": {"prefill": (16, 64, 256), "decode": (1, 8, 64)},
    "cpu": {"prefill": (4, 12), "decode": (1, 3)},
}
MEMORY_MIB = 4096
"""Of the GPU, for one model: its dimensions grow with it, by the stated rule of scaling."""

REQUEST_SLOTS = 4


def planned(model: str, device: Device, allocation: Allocation) -> tuple[CaptureJob, ModelFacts]:
    """The capture of that model: full graphs in both phases, whatever a release would do."""
    facts = find(model)
    if facts is None:
        raise LookupError(f"the packaged catalogue has no {model}")
    sizes = SIZES[device]
    graph: dict[Phase, PhaseGraph] = {
        "prefill": PhaseGraph(backend="full", bs=sizes["prefill"], full_prefill_max_req=REQUEST_SLOTS),
        "decode": PhaseGraph(backend="full", bs=sizes["decode"]),
    }
    options = CaptureOptions(
        device=device,
        allocation=allocation,
        sizes=8,
        memory_mib=MEMORY_MIB if device == "cuda" else None,
        timeout_s=60.0,
    )
    return job_for(id=model, facts=facts, graph=graph, options=options), facts


def in_this_process(model: str, device: torch.device, rounds: int) -> dict[str, Any]:
    """Both allocation orders, captured and compared with eager; where each runner has its own tables, timed by size."""
    job, facts = planned(model, _kind(device), "per-phase")
    setup, exact = set_up(job, device)
    sizes = [row.to_dict() for row in times(setup, rounds)]
    dtype = str(setup.dtype).removeprefix("torch.")
    del setup
    _tidy(device)
    owned = captured(planned(model, _kind(device), "decode-owned")[0], device=device)
    _tidy(device)
    problems = [f"per-phase: {said}" for said in _unlike(exact, expected("none"))]
    problems += [f"decode-owned: {said}" for said in _unlike(owned, expected(facts.hybrid))]
    return {
        "name": model,
        "hybrid": facts.hybrid,
        "dtype": dtype,
        "model": job.shape.to_dict(),
        "allocations": {"per-phase": _summary(exact), "decode-owned": _summary(owned)},
        "sizes": sizes,
        "problems": problems,
    }


def expected(hybrid: str) -> dict[Phase, str]:
    """What must come out in the engine's order: full prefill of a model with recurrent state meets the guard."""
    return {"prefill": "ok" if hybrid == "none" else "guard_refused", "decode": "ok"}


def _tidy(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def in_a_worker(model: str, device: Device) -> dict[str, Any]:
    """The engine's order, in a supervised process as the service makes its captures."""
    job, facts = planned(model, device, "decode-owned")
    with tempfile.TemporaryDirectory() as folder:
        report = Supervisor(Path(folder)).run(job)
    problems = _unlike(report.phases, expected(facts.hybrid))
    claim = "measured" if device == "cuda" else "emulated"
    if report.claim != claim:
        problems.append(f"the worker's report says {report.claim}, not {claim}")
    return {
        "name": model,
        "hybrid": facts.hybrid,
        "allocation": "decode-owned",
        "wall_s": report.wall_s,
        "order": [name for name in report.order if name.endswith((".begin", ".constructed", ".allocated"))],
        "phases": _summary(report.phases),
        "problems": problems,
    }


def clean_runs(count: int, device: torch.device) -> dict[str, Any]:
    """Captures over random shapes: none may be called a mismatch."""
    problems: list[str] = []
    replays = 0
    for seed in range(count):
        job = random_job(seed)
        phases = captured(job, device=device)
        problems += wrong(job, phases)
        replays += sum(len(graph.replays) for report in phases.values() for graph in report.graphs)
    return {"name": "clean runs", "runs": count, "replays": replays, "problems": problems}


def planted_faults(device: torch.device, most: int | None = None) -> dict[str, Any]:
    """Each fault, or the first ``most``, in a small hybrid model must come out as what it is. Those that fail a capture
    come last."""
    job = small_job(
        ("gdn", "attention"), prefill_sizes=(2, 6), decode_sizes=(3,), allocation="per-phase", max_requests=3
    )
    found: dict[str, Any] = {}
    problems: list[str] = []
    for fault in sorted(FAULTS, key=lambda one: "capture_failed" in one.outcome)[:most]:
        phases = captured(replace(job, id=str(fault), replays=4), fault.parts, device)
        outcome = (phases["prefill"].outcome, phases["decode"].outcome)
        found[str(fault)] = list(outcome)
        if outcome != fault.outcome:
            problems.append(f"{fault}: {outcome}, not {fault.outcome}")
    return {"name": "planted faults", "planted": len(found), "outcomes": found, "problems": problems}


def _unlike(phases: Mapping[Phase, PhaseReport], wanted: Mapping[Phase, str]) -> list[str]:
    return [
        f"{phase} is {phases[phase].outcome}, not {outcome}"
        + (f": {phases[phase].error.message[:300]}" if phases[phase].error else "")  # type: ignore[union-attr]  # tested in the same line
        for phase, outcome in wanted.items()
        if phases[phase].outcome != outcome
    ]


def _summary(phases: Mapping[Phase, PhaseReport]) -> dict[str, Any]:
    """A phase in a few lines; of its replays the worst."""
    return {
        phase: {
            "outcome": report.outcome,
            "error": None if report.error is None else report.error.message[:500],
            "graphs": [
                {
                    "size": graph.size,
                    "capture_s": graph.capture_s,
                    "pool_bytes": graph.bytes,
                    "segments": graph.segments,
                    "replays": len(graph.replays),
                    "most_padding": max(replay.padding for replay in graph.replays),
                    "max_abs": graph.max_abs,
                    "max_rel": graph.max_rel,
                    "state_abs": graph.state_abs,
                    "state_rel": graph.state_rel,
                    "intruded": sum(replay.intruded for replay in graph.replays),
                    "tolerance": graph.tolerance,
                }
                for graph in report.graphs
            ],
        }
        for phase, report in phases.items()
    }


def _kind(device: torch.device) -> Device:
    return "cuda" if device.type == "cuda" else "cpu"
