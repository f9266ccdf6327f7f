"""One guarded server for most tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_tests.hub import running_hub
from api_tests.security.guarded import Guarded, guarded_server

KEYS = {
    "alice": ("--scope", "validate", "--scope", "capture"),
    "bob": ("--scope", "validate", "--scope", "capture"),
    "validate": ("--scope", "validate"),
    "capture": ("--scope", "capture"),
    "worker": ("--scope", "worker"),
    "admin": ("--scope", "admin"),
}


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Its hub answers, and knows next to no model; addresses may fail, and captures wait, without end."""
    with (
        running_hub() as hub,
        guarded_server(
            tmp_path_factory.mktemp("guarded") / "data",
            KEYS,
            GRAPHGATE_EMBEDDED_WORKER="off",
            GRAPHGATE_FAILURES="100000000/minute",
            GRAPHGATE_CAPTURE_QUEUE="1000000",
            GRAPHGATE_OFFLINE="0",
            GRAPHGATE_HUB_ENDPOINT=hub.endpoint,
        ) as found,
    ):
        yield found
