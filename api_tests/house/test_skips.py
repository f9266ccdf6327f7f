"""A skip has a reason; where skipping is forbidden it fails, but for what no installation can bring."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.material import ROOT

SKIPS = {
    "material": "import pytest\ndef test_it():\n    pytest.skip('needs the optional test material: golden')\n",
    "gpu": "import pytest\n@pytest.mark.skipif(True, reason='needs a GPU')\ndef test_it():\n    assert False\n",
    "module": "import pytest\npytest.skip('needs a browser', allow_module_level=True)\n",
    "silent": "import pytest\n@pytest.mark.skip\ndef test_it():\n    assert False\n",
    "empty": "import pytest\ndef test_it():\n    pytest.skip()\n",
}


def run(folder: Path, body: str, *, no_skip: bool) -> subprocess.CompletedProcess[str]:
    shutil.copyfile(ROOT / "api_tests" / "conftest.py", folder / "conftest.py")
    (folder / "test_one.py").write_text(body, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "GRAPHGATE_NO_SKIP"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if no_skip:
        environment["GRAPHGATE_NO_SKIP"] = "1"
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["material", "gpu", "module"])
def test_a_skip_with_a_reason_is_fine_on_a_developers_machine(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, SKIPS[name], no_skip=False)
    assert "1 skipped" in done.stdout
    assert "failed" not in done.stdout


@pytest.mark.parametrize(
    ("name", "reason"), [("material", "needs the optional test material"), ("module", "needs a browser")]
)
def test_a_skip_fails_where_skipping_is_forbidden(tmp_path: Path, name: str, reason: str) -> None:
    done = run(tmp_path, SKIPS[name], no_skip=True)
    assert done.returncode != 0
    assert f"Skipping is forbidden here (GRAPHGATE_NO_SKIP) and this test skipped itself: {reason}" in done.stdout


def test_what_no_installation_can_bring_is_counted_instead(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS["gpu"], no_skip=True)
    assert done.returncode == 0
    assert "1 not run on this machine: needs a GPU" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].strip("= ").startswith("1 skipped"), "pytest's closing line comes last"


@pytest.mark.parametrize("name", ["silent", "empty"])
def test_a_skip_without_a_reason_fails_everywhere(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, SKIPS[name], no_skip=False)
    assert done.returncode == 1
    assert "A skip must say what it needs" in done.stdout
