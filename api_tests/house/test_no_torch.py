"""The service and the command work where importing torch or transformers is an error; and what `check` may not load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.material import ROOT

POISON = "raise RuntimeError('this process must not import {name}')\n"
LAUNCH = ["meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H200", "--gpu-count", "1"]

NOT_FOR_A_CHECK = {"torch", "transformers", "fastapi", "starlette", "uvicorn", "pydantic", "sqlalchemy", "alembic"} | {
    "huggingface_hub",
    "httpx",
    "yaml",
}


@pytest.fixture
def poisoned(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing torch or transformers fails."""
    for name in ("torch", "transformers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(POISON.format(name=name), encoding="utf-8")
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "GRAPHGATE_OFFLINE": "1",
        "GRAPHGATE_DATA": str(tmp_path / "data"),
    }


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_poison_works(poisoned: dict[str, str]) -> None:
    assert "must not import torch" in python(poisoned, "-c", "import torch").stderr


@pytest.mark.parametrize("module", ["service.app", "service.cli", "engine.preflight", "engine.capture.supervisor"])
def test_a_module_loads_without_torch(poisoned: dict[str, str], module: str) -> None:
    done = python(poisoned, "-c", f"import {module}")
    assert done.returncode == 0, done.stderr[-1500:]


def test_a_launch_is_checked_without_torch(poisoned: dict[str, str]) -> None:
    done = python(poisoned, "-m", "service", "check", *LAUNCH, "--format", "json")
    assert done.returncode == 0, done.stderr[-1500:]
    assert json.loads(done.stdout)


def test_a_check_loads_nothing_heavy(poisoned: dict[str, str]) -> None:
    """An incident is no time to wait for a database toolkit to load."""
    done = python(poisoned, "-X", "importtime", "-m", "service", "check", *LAUNCH)
    assert done.returncode == 0, done.stderr[-1500:]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "engine" in loaded
    assert loaded & NOT_FOR_A_CHECK == set()
