"""A server that answers admission reviews, and one that denies what it cannot examine; both with a hub of their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from api_tests.hub import HubServer, running_hub
from api_tests.server import RunningServer, running_server


@pytest.fixture(scope="session")
def hub() -> Iterator[HubServer]:
    with running_hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, hub: HubServer) -> Iterator[RunningServer]:
    with running_server(
        tmp_path_factory.mktemp("admission"),
        GRAPHGATE_OFFLINE="0",
        GRAPHGATE_HUB_ENDPOINT=hub.endpoint,
        GRAPHGATE_HUB_TIMEOUT="20",
        GRAPHGATE_NEGATIVE_CACHE="0",
        GRAPHGATE_EMBEDDED_WORKER="off",
    ) as server:
        yield server


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory, hub: HubServer) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("strict")
    (folder / "policy.yaml").write_text("version: 1\ngate: {admission: warn}\n", encoding="utf-8")
    with running_server(
        folder / "data",
        GRAPHGATE_OFFLINE="0",
        GRAPHGATE_HUB_ENDPOINT=hub.endpoint,
        GRAPHGATE_HUB_TIMEOUT="20",
        GRAPHGATE_NEGATIVE_CACHE="0",
        GRAPHGATE_MODEL_PREFER="hub",
        GRAPHGATE_ADMISSION_ON_UNKNOWN="deny",
        GRAPHGATE_POLICY=str(folder / "policy.yaml"),
        GRAPHGATE_EMBEDDED_WORKER="off",
    ) as server:
        yield server


@pytest.fixture
def api(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def strict_api(strict: RunningServer) -> Iterator[httpx.Client]:
    with strict.client() as client:
        yield client
