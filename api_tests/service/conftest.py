"""One server for most tests of this folder; its model hub is the one on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api_tests.hub import HubServer, running_hub
from api_tests.server import RunningServer, running_server

SECRET = "hf_" + "neverShown" * 3
"""The token that the server of these tests has for its hub."""


@pytest.fixture(scope="session")
def hub() -> Iterator[HubServer]:
    with running_hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, hub: HubServer) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("service")
    (folder / "models").mkdir()
    with running_server(
        folder / "data",
        GRAPHGATE_OFFLINE="0",
        GRAPHGATE_HUB_ENDPOINT=hub.endpoint,
        GRAPHGATE_HUB_TOKEN=SECRET,
        GRAPHGATE_HUB_TIMEOUT="2",
        GRAPHGATE_NEGATIVE_CACHE="0",
        GRAPHGATE_MODEL_ROOTS=str(folder / "models"),
    ) as server:
        yield server


@pytest.fixture
def api(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
