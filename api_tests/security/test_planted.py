"""The check that no secret is in a log finds one that is, and fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.material import ROOT
from api_tests.planted import leaks, plant, plant_settings, planted

RUN = """
from api_tests.planted import plant

def test_that_passes(tmp_path):
    (tmp_path / "server.log").write_text("started\\n" + {what!r} + "\\n")
    plant("planted-" + "for-this-run")
"""


@pytest.mark.parametrize(("what", "code"), [("it says planted-for-this-run here", 1), ("it says nothing", 0)])
def test_a_run_fails_where_a_log_holds_a_secret(tmp_path: Path, what: str, code: int) -> None:
    file = tmp_path / "test_inner.py"
    file.write_text(RUN.format(what=what))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "api_tests.secrets_check", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*words, "--basetemp", str(tmp_path / "inner"), "-c", "/dev/null", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    if code:
        assert "server.log:2: it says <the secret> here" in done.stdout
        assert "planted-for-this-run" not in done.stdout
    (tmp_path / "inner" / "test_that_passes0" / "server.log").unlink()


def test_settings_are_searched_for_secrets() -> None:
    plant_settings(
        {
            "GRAPHGATE_DATABASE_URL": "postgresql+psycopg://me:in-the-" + "address@127.0.0.1/db",
            "GRAPHGATE_HUB_TOKEN": "hf_in-the-" + "variable",
            "GRAPHGATE_DATA": "/tmp/not-a-secret",  # noqa: S108 - a text, no file
        }
    )
    assert {"in-the-" + "address", "hf_in-the-" + "variable"} <= planted()
    assert "/tmp/not-a-secret" not in planted()  # noqa: S108 - a text, no file


def test_a_secret_is_found_in_binary_files_too(tmp_path: Path) -> None:
    file = tmp_path / "graphgate.sqlite"
    file.write_bytes(b"\x00\x01first\nsecond inside-binary\xff\n")
    assert leaks(["inside-binary"], [file]) == [f"{file}:2: second <the secret>\ufffd"]
    file.unlink()


def test_what_is_too_short_to_tell_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        plant("short")
