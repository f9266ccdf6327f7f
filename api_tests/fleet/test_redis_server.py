"""The Redis that the tests start is a real one, and dies as a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_tests.redis_server import running_redis


@pytest.mark.parametrize(("appendonly", "kept"), [(True, "$5"), (False, "$-1")])
def test_a_killed_server_keeps_what_it_wrote_to_disk_and_nothing_else(
    tmp_path: Path, appendonly: bool, kept: str
) -> None:
    with running_redis(tmp_path, appendonly=appendonly) as redis:
        assert redis.ask("SET", "word", "hello") == "+OK"
        redis.kill()
        assert not redis.running
        with pytest.raises(OSError, match=r"refused|reset"):
            redis.ask("PING")
        redis.start()
        assert redis.ask("GET", "word") == kept
