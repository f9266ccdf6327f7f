"""The script for a CUDA device: what it writes, by its rehearsal on a CPU, and what it says where there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api_tests.material import ROOT

torch = pytest.importorskip("torch", reason="the worker extra is not installed")

SCRIPT = ROOT / "scripts" / "gpu_check.py"
MEASUREMENTS = ROOT / "docs" / "measurements"
REHEARSED = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-Next-80B-A3B-Instruct")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], cwd=cwd, capture_output=True, text=True)


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("rehearsal")
    out = folder / "out.json"
    few = ("--rounds", "1", "--clean-runs", "2", "--faults", "4", "--limit", "3000")
    done = run("--device", "cpu", *few, "--out", str(out), "--models", *REHEARSED, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("emulated on CPU")
    value: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return value


def test_a_rehearsal_is_never_called_a_measurement(rehearsal: dict[str, Any]) -> None:
    assert rehearsal["claim"] == "emulated"
    assert rehearsal["device"].startswith("CPU")
    assert {"graphgate", "python", "torch"} == set(rehearsal["versions"])
    assert "measured" not in json.dumps(rehearsal)


def test_everything_was_reached_and_is_as_it_must_be(rehearsal: dict[str, Any]) -> None:
    assert (rehearsal["complete"], rehearsal["as_it_must_be"]) == (True, True)
    assert (rehearsal["problems"], rehearsal["not_reached"]) == ([], [])
    assert rehearsal["seconds"] > 0


def test_times_and_bytes_of_each_size(rehearsal: dict[str, Any]) -> None:
    assert [model["name"] for model in rehearsal["models"]] == list(REHEARSED)
    for model in rehearsal["models"]:
        assert [(row["phase"], row["size"]) for row in model["sizes"]] == [
            ("prefill", 4),
            ("prefill", 12),
            ("decode", 1),
            ("decode", 3),
        ]
        for row in model["sizes"]:
            assert min(row[key] for key in ("capture_s", "eager_s", "replay_s", "graph_s", "pool_bytes")) > 0
            assert row["eager_to_replay"] == pytest.approx(row["eager_s"] / row["replay_s"])
        compared = [
            graph for phases in model["allocations"].values() for one in phases.values() for graph in one["graphs"]
        ]
        assert len(compared) == (8 if model["hybrid"] == "none" else 6)
        for graph in compared:
            assert max(graph["max_rel"], graph["state_rel"]) <= graph["tolerance"]
            assert (graph["intruded"], graph["replays"]) == (0, 7)


def test_both_orders_and_the_faults(rehearsal: dict[str, Any]) -> None:
    found = {
        (model["name"], allocation): (phases["prefill"]["outcome"], phases["decode"]["outcome"])
        for model in rehearsal["models"]
        for allocation, phases in model["allocations"].items()
    }
    attention, hybrid = REHEARSED
    assert found == {
        (attention, "per-phase"): ("ok", "ok"),
        (attention, "decode-owned"): ("ok", "ok"),
        (hybrid, "per-phase"): ("ok", "ok"),
        (hybrid, "decode-owned"): ("guard_refused", "ok"),
    }
    assert [worker["phases"]["prefill"]["outcome"] for worker in rehearsal["workers"]] == ["ok", "guard_refused"]
    assert "state_indices_list" in rehearsal["workers"][1]["phases"]["prefill"]["error"]
    (faults,) = rehearsal["faults"]
    assert faults["planted"] == len(faults["outcomes"]) == 4
    assert "ok" not in {prefill for prefill, _ in faults["outcomes"].values()}
    (clean,) = rehearsal["clean"]
    assert (clean["runs"], clean["replays"] > 0) == (2, True)


def test_past_the_limit_it_says_what_it_did_not_reach(tmp_path: Path) -> None:
    done = run("--device", "cpu", "--limit", "0", "--models", REHEARSED[0], cwd=tmp_path)
    written = json.loads((tmp_path / "gpu-check.json").read_text(encoding="utf-8"))
    assert done.returncode == 1
    assert (written["complete"], written["as_it_must_be"]) == (False, False)
    assert len(written["not_reached"]) == 4


def test_a_model_that_nobody_knows_is_a_problem_and_ends_nothing(tmp_path: Path) -> None:
    done = run(
        "--device",
        "cpu",
        "--steps",
        "models",
        "workers",
        "clean",
        "--models",
        "acme/none",
        "--clean-runs",
        "1",
        cwd=tmp_path,
    )
    written = json.loads((tmp_path / "gpu-check.json").read_text(encoding="utf-8"))
    assert done.returncode == 1
    assert len([problem for problem in written["problems"] if "has no acme/none" in problem]) == 2
    assert [clean["runs"] for clean in written["clean"]] == [1]


def test_without_a_gpu_it_refuses_and_says_why(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = run(cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no CUDA device here" in done.stderr
    assert "--device cpu" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_page_says_not_measured_until_something_was() -> None:
    measured = [
        file
        for file in MEASUREMENTS.glob("*.json")
        if json.loads(file.read_text(encoding="utf-8"))["claim"] == "measured"
    ]
    page = (MEASUREMENTS / "README.md").read_text(encoding="utf-8")
    assert ("**Not measured.**" in page) == (not measured)
    assert list(MEASUREMENTS.glob("*.json")) == measured
    assert all(file.name in page for file in measured)
    assert "python scripts/gpu_check.py" in page
