"""One look-up for many who ask, and an answer in time for who cannot wait."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from api_tests import hub as moods
from api_tests.hub import HubServer
from api_tests.models.test_hub_breaker import LLAMA, until
from engine.errors import HubUnavailable, ModelNotFound
from engine.launch import ModelRef
from engine.models.facts import ModelFacts
from engine.models.resolver import ModelResolver, ModelSettings

ID = "someone/some-model"


def resolver_of(hub: HubServer, **changes: Any) -> ModelResolver:
    return ModelResolver(ModelSettings(**{"hub_endpoint": hub.endpoint, "timeout_s": 30.0, **changes}))


def at_once(count: int, resolver: ModelResolver, found: list[ModelFacts | Exception]) -> list[threading.Thread]:
    def ask() -> None:
        try:
            found.append(resolver.resolve(ModelRef(id=ID)))
        except Exception as error:  # the test looks at it
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_one_request_for_a_hundred_questions(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    gate = threading.Event()
    hub.behaviour = moods.held(gate)
    resolver = resolver_of(hub)
    found: list[ModelFacts | Exception] = []
    threads = at_once(100, resolver, found)
    until(lambda: resolver.hub_status()["answers"].get("shared") == 99)
    gate.set()
    for thread in threads:
        thread.join(20)
    assert len(found) == 100
    assert len({id(facts) for facts in found}) == 1
    assert len(hub.requests) == 1


def test_one_failure_for_all_and_an_error_for_each(hub: HubServer) -> None:
    gate = threading.Event()
    hub.behaviour = moods.held(gate)  # and then there is no such model
    resolver = resolver_of(hub)
    found: list[ModelFacts | Exception] = []
    threads = at_once(10, resolver, found)
    until(lambda: resolver.hub_status()["answers"].get("shared") == 9)
    gate.set()
    for thread in threads:
        thread.join(20)
    assert {type(error) for error in found} == {ModelNotFound}
    assert len({id(error) for error in found}) == 10
    assert len(hub.requests) == 1


def test_who_is_in_a_hurry_is_told_in_time_and_the_next_one_has_the_answer(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    gate = threading.Event()
    hub.behaviour = moods.held(gate)
    resolver = resolver_of(hub)
    for _ in range(3):
        with pytest.raises(HubUnavailable, match=r"did not answer for someone/some-model within 0\.1 seconds"):
            resolver.resolve(ModelRef(id=ID), wait_s=0.1)
    gate.set()
    until(lambda: resolver.hub_status()["calls"] == {"found": 1})
    assert resolver.resolve(ModelRef(id=ID), wait_s=20.0).num_layers == 2
    assert len(hub.requests) == 1
    assert resolver.hub_status()["answers"]["late"] == 3


def test_a_hurry_is_helped_by_the_catalogue_and_by_earlier_answers(hub: HubServer, tmp_path: Path) -> None:
    commit = hub.add(ID, LLAMA)
    resolver_of(hub, cache_dir=tmp_path).resolve(ModelRef(id=ID))
    hub.behaviour = moods.silent(30)
    resolver = resolver_of(hub, cache_dir=tmp_path, refresh_s=0.0, prefer="hub")
    stale = resolver.resolve(ModelRef(id=ID), wait_s=0.1)
    assert stale.revision == commit
    assert "within 0.1 seconds" in stale.notes[-1]
    packaged = resolver.resolve(ModelRef(id="Qwen/Qwen3-8B"), wait_s=0.1)
    assert packaged.source == "catalogue"
    assert "within 0.1 seconds" in packaged.notes[-1]


def test_what_memory_holds_is_answered_however_old(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    resolver = resolver_of(hub, refresh_s=0.0)
    first = resolver.resolve(ModelRef(id=ID))
    hub.behaviour = moods.silent(30)
    assert resolver.resolve(ModelRef(id=ID), wait_s=0.1) is first


def test_a_hanging_hub_holds_so_many_threads_and_no_more(hub: HubServer) -> None:
    hub.behaviour = moods.silent(60)
    resolver = resolver_of(hub, timeout_s=5.0)
    before = threading.active_count()
    begun = time.monotonic()
    for number in range(80):
        with pytest.raises(HubUnavailable):
            resolver.resolve(ModelRef(id=f"someone/model-{number}"), wait_s=0.005)
    if time.monotonic() - begun < 4:  # else the first have ended, and others took their place
        assert resolver.hub_status()["answers"] == {"late": 80}
        until(lambda: len(hub.requests) == 32)
    assert len(hub.requests) <= 80
    assert threading.active_count() - before <= 2 * 32 + 2 * 32 + 5, "two of each look-up, and two of the stand-in"
