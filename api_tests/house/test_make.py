"""The Makefile's targets are real, and installing again costs nothing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from api_tests.house.checkout import copy_to
from api_tests.material import ROOT

TARGETS = ["install", "serve", "test", "check", "format", "bench", "lock", "pytest"]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_can_be_made(target: str) -> None:
    done = make("--dry-run", target)
    assert done.returncode == 0, done.stderr


def test_make_alone_lists_every_target() -> None:
    declared = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    listed = set(re.findall(r"^  make ([a-z-]+)", make().stdout, re.M))
    assert declared == listed
    assert set(TARGETS) <= declared


def test_every_check_belongs_to_make_check() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (run_by_check,) = re.findall(r"^check: ([a-z -]+) ##", text, re.M)
    assert set(run_by_check.split()) == set(re.findall(r"^(check-[a-z]+):", text, re.M))


def test_installing_again_does_nothing() -> None:
    done = subprocess.run(["scripts/install.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""


def test_an_old_python_is_refused_with_what_to_do(tmp_path: Path) -> None:
    checkout = copy_to(
        tmp_path / "checkout", "scripts/install.sh", "pyproject.toml", "constraints.txt", "engine/version.py"
    )
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n', encoding="utf-8")
    old.chmod(0o755)
    done = subprocess.run(
        ["bash", "scripts/install.sh"],
        cwd=checkout,
        env={**os.environ, "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "graphgate needs Python 3.11 or newer; found Python 3.9.2" in done.stderr
    assert "make install PYTHON=" in done.stderr
    assert not (checkout / ".venv").exists()
