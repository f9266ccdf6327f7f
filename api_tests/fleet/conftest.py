"""One API and one Redis for the tests of a module; workers are each test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_tests.fleet.fleets import Fleet, running_fleet


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet
