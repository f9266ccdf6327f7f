"""A hub for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_tests.hub import HubServer, running_hub


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub on this machine is never asked through the environment's proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
