"""A fleet that is set up wrongly says at the start what to change, and shows no password."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.fleet.device import CPU, make_device
from api_tests.fleet.parts import clean
from api_tests.material import ROOT

SECRET = "neverShown" * 2


def said(tmp_path: Path, command: str, **settings: str) -> str:
    """What the command prints on standard error as it ends with status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "service", command],
        cwd=ROOT,
        env=clean({"GRAPHGATE_DATA": str(tmp_path / "data"), **settings}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_an_address_that_is_no_broker_s_is_named(tmp_path: Path, command: str) -> None:
    told = said(tmp_path, command, GRAPHGATE_BROKER_URL=f"amqp://graphgate:{SECRET}@broker/")
    assert "GRAPHGATE_BROKER_URL" in told
    assert "redis://" in told


@pytest.mark.parametrize("missing", ["celery", "redis"])
def test_a_broker_without_the_extra_says_what_to_install(tmp_path: Path, missing: str) -> None:
    package = tmp_path / "site" / missing
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"raise ModuleNotFoundError('gone', name={missing!r})\n", encoding="utf-8")
    broker = {"GRAPHGATE_BROKER_URL": f"redis://:{SECRET}@127.0.0.1:1/0", "PYTHONPATH": str(tmp_path / "site")}
    told = said(tmp_path, "reconcile", **broker)
    assert f"the package {missing} is not installed" in told
    assert "graphgate[fleet]" in told


def test_a_worker_whose_interpreter_has_no_torch_does_not_start(tmp_path: Path) -> None:
    bare = make_device(tmp_path / "bare", {**CPU, "torch": None}, effects=tmp_path / "effects")
    told = said(tmp_path, "worker", GRAPHGATE_WORKER_PYTHON=str(bare))
    assert "has no torch" in told
    assert "graphgate[worker]" in told
    assert "has no torch" in said(tmp_path, "worker", GRAPHGATE_WORKER_PYTHON="/nowhere/python")
