"""The whole way: a job into a fresh process, a report out of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.capture.jobs import LLAMA, QWEN3_NEXT, job
from engine.capture.job import DEFAULT_REPLAYS
from engine.capture.report import CaptureReport
from engine.capture.supervisor import CaptureEvent, Supervisor

pytest.importorskip("torch", reason="the worker extra is not installed")


def test_llama_captures_both_phases_and_says_emulated(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(LLAMA))
    assert {phase: result.outcome for phase, result in report.phases.items()} == {"prefill": "ok", "decode": "ok"}
    assert report.claim == "emulated"
    assert report.recorder == "aten"
    assert report.complete
    assert report.exit == "done"
    assert [graph.size for graph in report.phases["prefill"].graphs] == [4, 16]
    for result in report.phases.values():
        for graph in result.graphs:
            assert len(graph.replays) == DEFAULT_REPLAYS
            assert any(replay.padding > 0 for replay in graph.replays) or graph.size == 1
            assert len({replay.lengths for replay in graph.replays}) > 1
            assert graph.max_rel <= graph.tolerance
            assert graph.bytes > 0
            assert graph.capture_s > 0
    assert CaptureReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False))) == report
    assert list(tmp_path.iterdir()) == []


def test_full_prefill_on_a_hybrid_is_refused_by_name_and_decode_is_sound(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(QWEN3_NEXT))
    prefill = report.phases["prefill"]
    assert prefill.outcome == "guard_refused"
    assert prefill.error is not None
    assert prefill.error.type == "RuntimeError"
    for word in ("state_indices_list", "batch size 4", "holds 0 sizes", "GDN", "init_cuda_graph_state", "disabled"):
        assert word in prefill.error.message
    assert "IndexError" not in prefill.error.traceback
    assert report.phases["decode"].outcome == "ok"
    assert report.complete


def test_prefill_captures_before_the_decode_runner_exists(tmp_path: Path) -> None:
    seen: list[CaptureEvent] = []
    report = Supervisor(tmp_path).run(job(LLAMA), on_event=seen.append)
    names = [event.name for event in seen]
    assert tuple(names) == report.order
    assert names[0] == "worker.spawned"
    order = [
        "prefill.runner.begin",
        "prefill.capture.begin",
        "prefill.capture.end",
        "prefill.runner.constructed",
        "decode.runner.begin",
        "decode.graph_state.allocated",
        "decode.capture.begin",
        "decode.runner.constructed",
    ]
    assert [name for name in names if name in order] == order
    sizes = [event.data["size"] for event in seen if event.name == "prefill.capture.size"]
    assert sizes == [16, 4]
    assert [event.at for event in seen] == sorted(event.at for event in seen)


def test_tables_for_each_phase_make_full_prefill_of_a_hybrid_exact(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(QWEN3_NEXT, allocation="per-phase"))
    prefill = report.phases["prefill"]
    assert prefill.outcome == "ok"
    assert report.phases["decode"].outcome == "ok"
    assert report.order.index("prefill.graph_state.allocated") < report.order.index("prefill.capture.begin")
    assert all(graph.state_rel <= graph.tolerance for graph in prefill.graphs)
    assert {replay.scenario for replay in prefill.graphs[0].replays} >= {"padded, every other request continued"}


def test_breakable_prefill_of_a_hybrid_needs_no_tables(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(QWEN3_NEXT, prefill="breakable"))
    prefill = report.phases["prefill"]
    assert prefill.outcome == "ok"
    # One segment before each mixing layer, and the last.
    assert {graph.segments for graph in prefill.graphs} == {len(QWEN3_NEXT) + 1}
    assert "segments" in prefill.recorded_as


def test_a_disabled_phase_is_skipped(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(LLAMA, prefill="disabled"))
    assert report.phases["prefill"].outcome == "skipped"
    assert report.phases["decode"].outcome == "ok"


def test_a_family_without_a_kernel_is_named_and_not_replaced(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job(("rwkv", "attention")))
    assert {result.outcome for result in report.phases.values()} == {"infrastructure"}
    assert report.error is not None
    assert report.error.type == "UnsupportedLayer"
    assert "'rwkv'" in report.error.message
    assert report.claim is None


def test_a_worker_without_torch_says_what_to_install(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    report = Supervisor(tmp_path / "work", python=str(bare / "bin" / "python")).run(job(LLAMA))
    assert {result.outcome for result in report.phases.values()} == {"infrastructure"}
    assert report.error is not None
    assert report.error.type == "TorchMissing"
    assert "graphgate[worker]" in report.error.message


def test_a_gpu_that_is_not_there_is_infrastructure(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    from dataclasses import replace

    small = job(LLAMA)
    report = Supervisor(tmp_path).run(replace(small, options=replace(small.options, device="cuda")))
    assert {result.outcome for result in report.phases.values()} == {"infrastructure"}
    assert report.error is not None
    assert report.error.type == "NoGpu"
