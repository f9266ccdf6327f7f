"""The house's own checks find what they are for, and let pass what is fine."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.material import ROOT

LEFTOVERS = runpy.run_path(str(ROOT / "scripts" / "check_leftovers.py"))["leftovers"]
TOO_LONG = runpy.run_path(str(ROOT / "scripts" / "check_lines.py"))["too_long"]

FOUND = [
    ("a path of one machine", "cache = '/ho" + "me/anna/.cache'"),
    ("a path of one machine", "see /ro" + "ot/project/x.py"),
    ("a package mirror", "pip install --extra-index" + "-url=http://10.0.0.1/simple x"),
    ("a package mirror", "curl https://regis" + "try.example.org/x"),
    ("a secret", "token = 'hf" + "_abcdefghijklmnopqrstuvwxyzABCDEFGH'"),
    ("a secret", "-----BEGIN RSA PRIV" + "ATE KEY-----"),
    ("a merge conflict", "<<<<" + "<<< HEAD"),
    ("an unfinished note", "# TO" + "DO: later"),
    ("a debugger", "    break" + "point()"),
]

FINE = [
    "GRAPHGATE_DATA=/var/lib/graphgate",
    "https://github.com/sgl-project/sglang/issues/48593",
    "USER 10001:10001 in /home" + "/graphgate/app",
    "the regex hf_token is a name",
    "======= a heading",
    "a method named to_do_list",
]


@pytest.mark.parametrize(("what", "line"), FOUND)
def test_a_leftover_is_found_with_its_line(what: str, line: str) -> None:
    assert [(number, kind) for number, kind, _ in LEFTOVERS(f"fine\n{line}\n")] == [(2, what)]


@pytest.mark.parametrize("line", FINE)
def test_what_is_fine_passes(line: str) -> None:
    assert LEFTOVERS(line) == []


def test_a_line_may_say_why_it_holds_one() -> None:
    assert LEFTOVERS(f"{FOUND[0][1]}  # leftover-ok: an example of what is refused") == []


def test_a_file_of_401_lines_is_too_long_and_one_of_400_is_not(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "long.py").write_text("x = 1\n" * 401, encoding="utf-8")
    (tmp_path / "engine" / "fine.py").write_text("x = 1\n" * 400, encoding="utf-8")
    (tmp_path / "engine" / "data.json").write_text("1\n" * 9000, encoding="utf-8")
    assert TOO_LONG(tmp_path) == [(Path("engine/long.py"), 401)]


def test_a_stale_file_is_named_with_the_script_that_makes_it(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copyfile(ROOT / "scripts" / "check_generated.py", scripts / "check_generated.py")
    (scripts / "make_fresh.py").write_text('import sys\nsys.exit(sys.argv[1:] != ["--check"])\n', encoding="utf-8")
    (scripts / "make_stale.py").write_text('import sys\nsys.exit("--check" in sys.argv)\n', encoding="utf-8")
    (scripts / "other.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    command = [sys.executable, str(scripts / "check_generated.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "out of date: run .venv/bin/python scripts/make_stale.py\n"
