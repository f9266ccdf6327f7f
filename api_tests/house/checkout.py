"""A copy of the checkout's own files, for tests that must change or build something."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from api_tests.material import ROOT

PLUGIN = "engine/sglang_plugin"
"""A distribution of its own, which lies in the engine's folder and is no part of the package ``engine``."""


def product_files(*below: str) -> list[Path]:
    """The checkout's own files of graphgate's own distribution."""
    return [path for path in own_files(*below) if not path.is_relative_to(PLUGIN)]


def own_files(*below: str) -> list[Path]:
    """The files of the checkout, relative to its root: tracked ones and new ones, without what git ignores."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.fail("the house's tests run in a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *below],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = {Path(name) for name in listed.stdout.decode().split("\0") if name}
    return sorted(name for name in names if (ROOT / name).is_file())


def copy_to(target: Path, *below: str) -> Path:
    """Copy the checkout's own files below ``below`` to ``target`` and return it."""
    for name in own_files(*below):
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, destination)
    return target
