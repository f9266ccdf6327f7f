"""Rules for every test: a skip has a reason, and where skipping is forbidden (GRAPHGATE_NO_SKIP=1) a skip is a failure.

A few reasons stay allowed there, because no installation can remove them; they are counted in the summary.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from api_tests import secrets_check
from api_tests.postgres import PostgresServer, running_postgres

if TYPE_CHECKING:
    from service.store.database import Database

pytest_sessionfinish = secrets_check.pytest_sessionfinish

ALLOWED_REASONS = ("needs a GPU", "needs a Docker daemon", "needs an installed engine")
"""What a machine either has or has not: a skip's reason that begins so is no failure."""

NO_REASON = frozenset({"", "Skipped", "unconditional skip"})
"""What pytest reports where a skip was given none."""

NO_SKIP = os.environ.get("GRAPHGATE_NO_SKIP", "") not in {"", "0"}

_allowed_skips = pytest.StashKey[list[str]]()


def complaint(reason: str, *, forbidden: bool) -> str | None:
    """Why a skip with this reason is a failure; None where it is fine."""
    if reason in NO_REASON:
        return "A skip must say what it needs: give it a reason."
    if forbidden and not reason.startswith(ALLOWED_REASONS):
        return f"Skipping is forbidden here (GRAPHGATE_NO_SKIP) and this test skipped itself: {reason}"
    return None


def _judge(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    longrepr = report.longrepr
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    reason = text.removeprefix("Skipped: ").strip()
    problem = complaint(reason, forbidden=NO_SKIP)
    if problem is None:
        config.stash.setdefault(_allowed_skips, []).append(reason)
    else:
        report.outcome = "failed"
        report.longrepr = problem


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests; who kills one starts one of their own (``running_postgres``)."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The address of a database of this test alone."""
    return postgres.fresh_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database in its newest form: of both kinds, one after the other."""
    from service.store.address import address_of
    from service.store.database import Database
    from service.store.migrate import migrate

    file = f"sqlite:///{tmp_path}/graphgate.sqlite"
    address = file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    database = Database(address_of(address))
    migrate(database)
    yield database
    database.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report, collector.config)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests this machine could not run."""
    skips = terminalreporter.config.stash.get(_allowed_skips, [])
    for reason in sorted(set(skips)):
        terminalreporter.write_line(f"{skips.count(reason)} not run on this machine: {reason}")
    secrets_check.pytest_terminal_summary(terminalreporter)
