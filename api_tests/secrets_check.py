"""At the end of a run: is a planted secret in a log? Part of ``api_tests/conftest.py``, and a plugin of its own."""

from __future__ import annotations

import os

import pytest

from api_tests import planted

_result = pytest.StashKey[tuple[list[str], int, int]]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look, and fail the run where there is one."""
    factory: pytest.TempPathFactory | None = getattr(session.config, "_tmp_path_factory", None)
    if factory is None or getattr(factory, "_basetemp", None) is None:
        return  # no test had a temporary folder, so no server ran
    secrets, logs = planted.planted(), list(planted.logs_below(factory.getbasetemp()))
    found = planted.leaks(secrets, logs)
    planted.forget_kept()
    session.config.stash[_result] = (found, len(secrets), len(logs))
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was found."""
    found, secrets, logs = terminalreporter.config.stash.get(_result, ([], 0, 0))
    for leak in found[:20]:
        terminalreporter.write_line(f"a secret in a log: {leak}", red=True)
    if secrets:
        words = f"{len(found)} of" if found else "none of"
        terminalreporter.write_line(
            f"{words} {secrets} planted secrets in {logs} logs and files{os.linesep}", bold=True
        )
