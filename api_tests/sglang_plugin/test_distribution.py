"""The plugin as a distribution: small, alone, built without a network, and no part of graphgate's own."""

from __future__ import annotations

import ast
import configparser
import importlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from graphgate_sglang import plugin

from api_tests.material import ROOT
from api_tests.sglang_plugin.engines import PLUGIN, SOURCE, engine_at
from api_tests.sglang_plugin.test_rule import NAMED
from engine.sglang.releases import known_releases

MODULES = sorted(SOURCE.glob("graphgate_sglang/*.py"))


def test_it_is_well_under_four_hundred_lines() -> None:
    lines = [line for path in MODULES for line in path.read_text("utf-8").splitlines()]
    assert len(MODULES) >= 5
    assert len(lines) < 400


def test_it_imports_nothing_but_the_engine_and_the_standard_library() -> None:
    roots = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                roots.add(str(node.module).partition(".")[0])
    assert roots - sys.stdlib_module_names == {"graphgate_sglang", "sglang", "torch"}


def test_it_knows_the_releases_that_graphgate_knows() -> None:
    oldest, *_, newest = known_releases()
    assert [tuple(map(int, release.split("."))) for release in (oldest, newest)] == [plugin.OLDEST, plugin.NEWEST]


def test_only_inkling_is_named() -> None:
    named = {
        "Qwen",
        "Kimi",
        "Nemotron",
        "Jet",
        "Lfm",
        "LFM",
        "Bailing",
        "Granite",
        "Falcon",
        "Zaya",
        "MiniCPM",
        "Mamba2",
    }
    text = "".join(path.read_text("utf-8") for path in MODULES)
    assert "Inkling" in text
    assert [name for name in sorted(named) if name in text] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, with the build tools that are installed and nothing from outside."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(PLUGIN, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "-w", str(folder), str(folder / "source")], check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_its_own_files_alone(wheel: Path) -> None:
    assert wheel.name == "graphgate_sglang-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    own = {f"graphgate_sglang/{path.name}" for path in (*MODULES, SOURCE / "graphgate_sglang" / "py.typed")}
    assert {name for name in names if ".dist-info/" not in name} == own


def test_the_wheel_names_the_engines_entry_point_and_needs_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        points = configparser.ConfigParser()
        points.read_string(archive.read("graphgate_sglang-0.1.0.dist-info/entry_points.txt").decode())
        metadata = archive.read("graphgate_sglang-0.1.0.dist-info/METADATA").decode()
    assert dict(points["sglang.srt.plugins"]) == {"graphgate": "graphgate_sglang:register"}
    assert "Requires-Dist" not in metadata
    assert "Name: graphgate-sglang" in metadata


def test_the_wheel_works_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    engine = engine_at(tmp_path, "pipeline")
    shutil.rmtree(tmp_path / "graphgate_sglang-0.1.0.dist-info")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert engine.launch(NAMED).answers[0].startswith("ValueError: graphgate GG101")


def test_graphgates_own_distribution_does_not_swallow_it() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]["find"]
    tools: Any = importlib.import_module("setuptools")
    found = tools.find_namespace_packages(str(ROOT), include=asked["include"], exclude=asked["exclude"])
    assert "engine.guards" in found
    assert [name for name in found if "plugin" in name] == []
