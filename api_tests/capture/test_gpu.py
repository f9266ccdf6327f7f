"""On a GPU: the same captures as CUDA graphs, and the claim "measured"."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from api_tests.capture.jobs import LLAMA, QWEN3_NEXT, job
from api_tests.material import ROOT
from engine.capture.job import CaptureJob
from engine.capture.options import Allocation
from engine.capture.supervisor import Supervisor

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.timeout(600),
]


def on_gpu(planned: CaptureJob) -> CaptureJob:
    return replace(planned, options=replace(planned.options, device="cuda"))


@pytest.mark.parametrize(
    ("planned", "prefill"),
    [
        (job(LLAMA), "ok"),
        (job(QWEN3_NEXT), "guard_refused"),
        (job(QWEN3_NEXT, allocation="per-phase"), "ok"),
        (job(QWEN3_NEXT, prefill="breakable"), "ok"),
    ],
    ids=["llama", "hybrid", "hybrid per-phase", "hybrid breakable"],
)
def test_measured(tmp_path: Path, planned: CaptureJob, prefill: str) -> None:
    report = Supervisor(tmp_path).run(on_gpu(planned))
    assert {phase: result.outcome for phase, result in report.phases.items()} == {"prefill": prefill, "decode": "ok"}
    assert (report.claim, report.recorder, report.dtype) == ("measured", "cuda", "bfloat16")
    assert {"cuda", "torch", "compute_capability"} <= set(report.versions)


@pytest.mark.parametrize("allocation", ["decode-owned", "per-phase"])
def test_too_little_memory_is_an_outcome(tmp_path: Path, allocation: Allocation) -> None:
    planned = on_gpu(job(LLAMA, allocation=allocation, sizes=(4096,), memory_mib=64))
    assert Supervisor(tmp_path).run(planned).phases["prefill"].outcome == "oom"


def test_everything_on_one_device(tmp_path: Path) -> None:
    """Every family, both orders, faults and clean runs, by the script that measures them."""
    out = tmp_path / "check.json"
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gpu_check.py"), "--out", str(out)], capture_output=True, text=True
    )
    written = json.loads(out.read_text(encoding="utf-8"))
    assert (written["claim"], written["problems"], written["not_reached"]) == ("measured", [], [])
    assert done.returncode == 0
