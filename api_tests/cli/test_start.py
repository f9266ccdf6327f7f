"""What a check must not load: it has to answer before a service would have started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from api_tests.cli.command import LLAMA, environment
from api_tests.material import ROOT

HEAVY = (
    "torch",
    "transformers",
    "huggingface_hub",
    "httpx",
    "pydantic",
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "yaml",
    "asyncio",
    "ssl",
    "shutil",
    "engine.capture",
    "service.settings",
)


@pytest.mark.parametrize("model", [LLAMA, "meta-llama/Llama-3.1-8B-Instruct"])
def test_a_check_loads_nothing_heavy(model: str) -> None:
    script = (
        "import sys\nfrom service.cli import main\ncode = main(['check', sys.argv[1]])\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, model],
        cwd=ROOT,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "0 []"
    assert done.stdout.startswith("accepted")


def test_the_command_is_installed_where_the_interpreter_is() -> None:
    """``make install`` leaves it there."""
    command = sys.executable.rpartition("/")[0] + "/graphgate"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("graphgate ")


@pytest.mark.parametrize(("debug", "shown"), [("", False), ("1", True)])
def test_a_mistake_of_ours_is_told_apart_from_a_bad_question(debug: str, shown: bool) -> None:
    """Planted: a module of the engine that cannot be imported."""
    script = "import sys\nsys.modules['engine.hardware'] = None\nfrom service.cli import main\nsys.exit(main(['gpus']))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment(GRAPHGATE_DEBUG=debug),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 70) is not shown
    assert ("Traceback" in done.stderr) is shown
    assert ("This is a mistake in graphgate" in done.stderr) is not shown
    assert "engine.hardware" in done.stderr
