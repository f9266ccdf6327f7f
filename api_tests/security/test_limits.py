"""How often a key and an address may ask (OWASP API4), counted in one process or in Redis for several."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api_tests.planted import plant
from api_tests.redis_server import running_redis
from api_tests.security.guarded import Guarded, guarded_server, make_key

OFF = {"GRAPHGATE_EMBEDDED_WORKER": "off"}
SLOW = ("--scope", "validate", "--rate", "5/hour")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    keys = {"slow": SLOW, "other": SLOW, "free": ("--scope", "validate")}
    data = tmp_path_factory.mktemp("limits")
    with guarded_server(data, keys, **OFF, GRAPHGATE_FAILURES="5/hour", GRAPHGATE_RATE="1000/hour") as found:
        yield found


def statuses(client: httpx.Client, times: int) -> list[int]:
    return [client.get("/v1/rules").status_code for _ in range(times)]


def test_a_key_is_stopped_at_its_rate_and_told_when_to_come_back(limited: Guarded) -> None:
    with limited.client("slow") as client:
        first = client.get("/v1/rules")
        assert first.headers["ratelimit-policy"] == '"requests";q=5;w=3600'
        assert re.fullmatch(r'"requests";r=4;t=\d+', first.headers["ratelimit"])
        assert statuses(client, 5) == [200] * 4 + [429]
        refused = client.get("/v1/rules")
    assert refused.json()["type"] == "/problems/rate-limited"
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert refused.headers["ratelimit"].startswith('"requests";r=0;')
    with limited.client("other") as client:
        assert client.get("/v1/rules").status_code == 200, "each key is counted by itself"


def test_a_key_without_a_rate_has_the_settings(limited: Guarded) -> None:
    with limited.client("free") as client:
        assert client.get("/v1/rules").headers["ratelimit-policy"] == '"requests";q=1000;w=3600'


def test_an_address_that_keeps_failing_is_not_looked_at_while_good_keys_are(limited: Guarded) -> None:
    with limited.client("free") as good, limited.client() as bad:
        assert good.get("/v1/rules").status_code == 200
        bad.headers["X-API-Key"] = "gg_aaaaaaaa_" + "A" * 43
        assert statuses(bad, 7) == [401] * 5 + [429] * 2
        refused = bad.get("/v1/rules")
        assert refused.json()["type"] == "/problems/too-many-failures"
        assert int(refused.headers["retry-after"]) > 0
        assert good.get("/v1/rules").status_code == 200
        late = make_key(limited.server.data, "late", "--scope", "validate")
        assert bad.get("/v1/rules", headers={"X-API-Key": late}).status_code == 429, "not even looked up"
        assert bad.get("/livez").status_code == 200


def test_several_processes_count_together_and_apart_while_redis_is_away(tmp_path: Path) -> None:
    keys = {"slow": SLOW}
    with running_redis(tmp_path / "redis") as redis:
        password = plant("redis-" + secrets.token_hex(12))
        assert redis.ask("CONFIG", "SET", "requirepass", password) == "+OK"
        settings = {**OFF, "GRAPHGATE_LIMITS_URL": redis.url.replace("://", f"://:{password}@")}
        with (
            guarded_server(tmp_path, keys, **settings) as one,
            guarded_server(tmp_path, {}, **settings) as two,
            one.client("slow") as first,
            two.server.client() as second,
        ):
            second.headers.update(first.headers)
            answers = [client.get("/v1/rules").status_code for _ in range(4) for client in (first, second)]
            assert answers.count(200) == 5
            assert first.get("/v1/rules").status_code == second.get("/v1/rules").status_code == 429
            redis.kill()
            assert statuses(first, 6) == [200] * 5 + [429], "each counts for itself"
            assert "this process counts for itself" in one.server.log.read_text()
            assert second.get("/v1/rules").status_code == 200
