"""Fixtures of the plugin's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_tests.sglang_plugin.engines import FakeEngine, engine_at
from api_tests.sglang_plugin.layouts import LAYOUTS


@pytest.fixture(params=sorted(LAYOUTS))
def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> FakeEngine:
    """An engine of each layout."""
    return engine_at(tmp_path, request.param)


@pytest.fixture
def newest(tmp_path: Path) -> FakeEngine:
    """An engine of the newest layout."""
    return engine_at(tmp_path, "pipeline")
