"""One guarded server for most tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
    with guarded_server(
        tmp_path_factory.mktemp("guarded") / "data",
        KEYS,
        GRAPHGATE_EMBEDDED_WORKER="off",
        GRAPHGATE_FAILURES="10000/minute",
    ) as found:
        yield found
