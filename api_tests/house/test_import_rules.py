"""Each import rule really fails when somebody breaks it, and a new capture module must say which side it is on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api_tests.house.checkout import copy_to
from api_tests.material import ROOT


@dataclass(frozen=True)
class Plant:
    """A line that breaks one rule when it is added to one file."""

    contract: str
    file: str
    line: str


PLANTS = [
    Plant("one-way", "engine/models/facts.py", "import engine.sglang"),
    Plant("one-way", "engine/sglang/predict.py", "import engine.guards"),
    Plant("one-way", "engine/guards/base.py", "import service"),
    Plant("capture-beside", "engine/guards/base.py", "import engine.capture.job"),
    Plant("capture-asks-nobody", "engine/capture/job.py", "import engine.sglang.predict"),
    Plant("process-border", "engine/capture/supervisor.py", "import engine.capture.setup"),
    Plant("process-border", "service/__init__.py", "import engine.capture.runners"),
    Plant("no-torch", "engine/capture/report.py", "import torch"),
    Plant("no-torch", "service/__init__.py", "import torch"),
    Plant("no-transformers", "engine/models/facts.py", "import transformers"),
    Plant("no-web-in-engine", "engine/launch.py", "import pydantic"),
    Plant("sql-in-store", "service/routes/__init__.py", "import sqlalchemy"),
]


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied = copy_to(tmp_path_factory.mktemp("checkout"), "engine", "service", "pyproject.toml")
    before = lint(copied, *(contract["id"] for contract in contracts()))
    assert before.returncode == 0, f"the rules hold before anything is planted: {before.stdout}"
    return copied


def lint(checkout: Path, *names: str) -> subprocess.CompletedProcess[str]:
    tool = str(Path(sys.executable).with_name("lint-imports"))
    command = [tool, "--no-logo", "--no-cache", *(f"--contract={name}" for name in names)]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.contract}:{plant.file}")
def test_a_broken_rule_is_found(checkout: Path, plant: Plant) -> None:
    file = checkout / plant.file
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text(f"{before}\n{plant.line}\n", encoding="utf-8")
        done = lint(checkout, plant.contract)
    finally:
        file.write_text(before, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_every_rule_is_tried() -> None:
    assert {contract["id"] for contract in contracts()} == {plant.contract for plant in PLANTS}


def test_every_package_of_the_domain_has_its_layer() -> None:
    (layers,) = (contract["layers"] for contract in contracts() if contract["id"] == "one-way")
    placed = {name for layer in layers for name in re.split(r" [|:] ", layer)}
    there = {
        f"engine.{path.stem}"
        for path in (ROOT / "engine").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }
    assert placed - {"service"} == there - {"engine.capture"}


def test_every_capture_module_is_on_one_side_of_the_process_border() -> None:
    by_id = {contract["id"]: contract for contract in contracts()}
    prefix = "engine.capture."
    without_torch = {name for name in by_id["no-torch"]["source_modules"] if name.startswith(prefix)}
    in_the_worker = set(by_id["process-border"]["forbidden_modules"])
    there = {
        prefix + path.stem
        for path in (ROOT / "engine" / "capture").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }
    assert without_torch | in_the_worker == there
    assert not without_torch & in_the_worker
