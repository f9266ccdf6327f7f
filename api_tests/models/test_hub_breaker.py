"""A hub that fails again and again is left alone, then probed; what is known already is answered meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api_tests import hub as moods
from api_tests.hub import HubServer
from engine.errors import HubRateLimited, HubUnavailable, ModelAccessDenied, ModelError, ModelNotFound
from engine.launch import ModelRef
from engine.models.resolver import ModelResolver, ModelSettings

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64}
ID = "someone/some-model"
SILENT = moods.silent(5)


def resolver_of(hub: HubServer, **changes: Any) -> ModelResolver:
    given = {"hub_endpoint": hub.endpoint, "timeout_s": 20.0, "hub_failures": 3, "hub_quiet_s": 0.3, **changes}
    return ModelResolver(ModelSettings(**given))


def fail(resolver: ModelResolver, times: int, name: str = "model") -> None:
    for number in range(times):
        with pytest.raises((HubUnavailable, HubRateLimited)):
            resolver.resolve(ModelRef(id=f"someone/{name}-{number}"))


def until(held: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not held():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "behaviour",
    [moods.raw(b""), moods.reset, moods.status(500), moods.status(503), moods.status(429), SILENT],
    ids=["hangs up", "resets", "500", "503", "429", "silent"],
)
def test_after_failures_in_a_row_nothing_is_asked(hub: HubServer, behaviour: moods.Behaviour) -> None:
    hub.behaviour = behaviour
    resolver = resolver_of(hub, hub_quiet_s=60.0, timeout_s=0.4 if behaviour is SILENT else 20.0)
    assert resolver.hub_status()["state"] == "closed"
    fail(resolver, 6)
    status = resolver.hub_status()
    assert (status["state"], status["answers"]) == ("open", {"refused": 3})
    assert sum(status["calls"].values()) == 3
    assert len(hub.requests) == 3 or behaviour is SILENT, "of the silent, only those that were connected in time"
    assert 50 < status["left_alone_s"] <= 60
    with pytest.raises(HubUnavailable, match="failed 3 times in a row"):
        resolver.resolve(ModelRef(id="someone/else"))
    assert resolver.resolve(ModelRef(id="Qwen/Qwen3-8B")).source == "catalogue"


def test_an_answer_of_any_kind_ends_the_row(hub: HubServer) -> None:
    resolver = resolver_of(hub)
    for number in range(3):
        hub.behaviour = moods.status(500)
        fail(resolver, 2, f"row{number}")
        hub.behaviour = moods.status(404)
        with pytest.raises(ModelNotFound):
            resolver.resolve(ModelRef(id=f"someone/missing-{number}"))
    assert len(hub.requests) == 9
    assert resolver.hub_status()["state"] == "closed"


def test_a_probe_closes_it(hub: HubServer) -> None:
    hub.behaviour = moods.status(500)
    resolver = resolver_of(hub)
    fail(resolver, 3)
    until(lambda: resolver.hub_status()["state"] == "half-open")
    hub.behaviour = None
    hub.add(ID, LLAMA)
    assert resolver.resolve(ModelRef(id=ID)).num_layers == 2
    assert resolver.hub_status()["state"] == "closed"
    hub.behaviour = moods.status(500)
    fail(resolver, 3, "later")
    assert len(hub.requests) == 7


def test_one_probe_at_a_time(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    hub.behaviour = moods.status(500)
    resolver = resolver_of(hub, timeout_s=20.0)
    fail(resolver, 3)
    until(lambda: resolver.hub_status()["state"] == "half-open")
    gate = threading.Event()
    hub.behaviour = moods.held(gate)
    probe = threading.Thread(target=resolver.resolve, args=[ModelRef(id=ID)])
    probe.start()
    until(lambda: len(hub.requests) == 4)
    fail(resolver, 5, "meanwhile")
    assert len(hub.requests) == 4
    gate.set()
    probe.join(20)
    assert resolver.hub_status()["state"] == "closed"


def test_a_probe_that_fails_opens_it_for_longer(hub: HubServer) -> None:
    hub.behaviour = moods.status(500)
    resolver = resolver_of(hub, hub_quiet_s=1.5)
    fail(resolver, 3)
    until(lambda: resolver.hub_status()["state"] == "half-open")
    fail(resolver, 1, "probe")
    status = resolver.hub_status()
    assert (status["state"], len(hub.requests)) == ("open", 4)
    assert 1.5 < status["left_alone_s"] <= 3.0


def test_a_hub_that_asks_to_wait_is_left_alone_so_long(hub: HubServer) -> None:
    hub.behaviour = moods.status(429, {"Retry-After": "50"})
    resolver = resolver_of(hub)
    fail(resolver, 3)
    assert 40 < resolver.hub_status()["left_alone_s"] <= 50


def test_what_was_kept_answers_while_it_is_open(hub: HubServer, tmp_path: Path) -> None:
    commit = hub.add(ID, LLAMA)
    resolver_of(hub, cache_dir=tmp_path).resolve(ModelRef(id=ID))
    hub.behaviour = moods.status(500)
    resolver = resolver_of(hub, cache_dir=tmp_path, refresh_s=0.0, hub_quiet_s=60.0)
    fail(resolver, 3)
    facts = resolver.resolve(ModelRef(id=ID))
    assert facts.revision == commit
    assert any("not asked" in note for note in facts.notes)
    assert resolver.hub_status()["answers"] == {"stale": 1, "refused": 1}


def test_a_branch_s_answer_is_known_by_its_commit_too(hub: HubServer, tmp_path: Path) -> None:
    commit = hub.add(ID, LLAMA)
    resolver = resolver_of(hub, refresh_s=0.0)
    resolver.resolve(ModelRef(id=ID))
    resolver_of(hub, cache_dir=tmp_path).resolve(ModelRef(id=ID))
    hub.behaviour = moods.status(500)
    pinned = ModelRef(id=ID, revision=commit)
    assert resolver.resolve(pinned).num_layers == 2
    later = resolver_of(hub, cache_dir=tmp_path)
    assert later.resolve(pinned).num_layers == 2
    assert later.resolve(pinned).num_layers == 2
    assert later.hub_status()["answers"] == {"disk": 1, "memory": 1}
    assert len(hub.requests) == 2


@pytest.mark.parametrize(("status", "kind"), [(404, ModelNotFound), (401, ModelAccessDenied), (403, ModelAccessDenied)])
def test_a_refusal_is_remembered_for_a_time_of_its_own(hub: HubServer, status: int, kind: type[ModelError]) -> None:
    hub.behaviour = moods.status(status)
    long, short = (resolver_of(hub, missing_cache_s=s, negative_cache_s=3600.0 - s) for s in (3600.0, 0.05))
    for resolver in (long, long, short):
        with pytest.raises(kind):
            resolver.resolve(ModelRef(id=ID))
    assert len(hub.requests) == 2
    assert long.hub_status()["answers"] == {"negative": 1}
    hub.behaviour = None
    hub.add(ID, LLAMA)
    time.sleep(0.06)
    assert short.resolve(ModelRef(id=ID)).num_layers == 2
    with pytest.raises(kind):
        long.resolve(ModelRef(id=ID))


def test_questions_over_the_network_are_told_of(hub: HubServer) -> None:
    told: list[tuple[str, float]] = []
    given = ModelSettings(hub_endpoint=hub.endpoint, timeout_s=0.2, negative_cache_s=0.0, missing_cache_s=0.0)
    resolver = ModelResolver(given, on_call=lambda outcome, seconds: told.append((outcome, seconds)))
    hub.add(ID, LLAMA)
    resolver.resolve(ModelRef(id=ID))
    resolver.resolve(ModelRef(id=ID))
    for behaviour in (moods.status(404), moods.status(401), moods.status(500), moods.silent(5), moods.status(429)):
        hub.behaviour = behaviour
        with pytest.raises(ModelError):
            resolver.resolve(ModelRef(id="someone/other"))
    assert [outcome for outcome, _ in told] == ["found", "missing", "denied", "failed", "timeout", "failed"]
    assert resolver.hub_status()["calls"] == {"found": 1, "missing": 1, "denied": 1, "failed": 2, "timeout": 1}
    assert resolver.hub_status()["answers"] == {"memory": 1}
    assert 0.15 < told[4][1] < 15


def test_offline_is_a_state_of_its_own(hub: HubServer) -> None:
    assert resolver_of(hub, offline=True).hub_status()["state"] == "offline"
