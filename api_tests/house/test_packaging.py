"""What is installed from a wheel is what lies in the checkout: data files too."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from api_tests.house.checkout import copy_to, product_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = copy_to(tmp_path_factory.mktemp("source"), "engine", "service", "pyproject.toml", "README.md")
    built = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", built, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return next(built.glob("graphgate-*.whl"))


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {Path(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == set(product_files("engine", "service"))
