"""The hub in all its moods, over real sockets."""

from __future__ import annotations

import email.utils
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from api_tests import hub as moods
from api_tests.hub import HubServer, running_hub
from engine.errors import (
    ConfigTooLarge,
    ConfigUnreadable,
    HubRateLimited,
    HubUnavailable,
    ModelAccessDenied,
    ModelNotFound,
)
from engine.launch import ModelRef
from engine.models.facts import ModelFacts
from engine.models.resolver import ModelResolver, ModelSettings

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64}
ID = "someone/some-model"
SECRET = "hf_a-secret-that-nobody-may-see"  # noqa: S105 - made up


def settings(hub: HubServer, **changes: Any) -> ModelSettings:
    return ModelSettings(**{"hub_endpoint": hub.endpoint, "timeout_s": 5.0, **changes})


def resolve(hub: HubServer, ref: ModelRef | str = ID, **changes: Any) -> ModelFacts:
    return ModelResolver(settings(hub, **changes)).resolve(ModelRef(id=ref) if isinstance(ref, str) else ref)


def test_a_branch_is_pinned_to_the_commit_that_the_hub_names(hub: HubServer) -> None:
    commit = hub.add(ID, LLAMA)
    facts = resolve(hub)
    assert (facts.source, facts.revision, facts.num_layers, facts.model_id) == ("hub", commit, 2, ID)
    assert facts.config == LLAMA
    assert [path for _, path, _ in hub.requests] == [f"/{ID}/resolve/main/config.json"]


def test_a_revision_is_asked_for_as_given(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    commit = hub.add(ID, {**LLAMA, "num_hidden_layers": 3}, revision="refs/pr/7")
    assert resolve(hub, ModelRef(id=ID, revision="refs/pr/7")).num_layers == 3
    assert resolve(hub, ModelRef(id=ID, revision=commit)).revision == commit
    with pytest.raises(ModelNotFound) as caught:
        resolve(hub, ModelRef(id=ID, revision="v9"))
    assert caught.value.field == "model.revision"


def test_a_revision_is_never_answered_by_the_catalogue(hub: HubServer) -> None:
    hub.behaviour = moods.status(500)
    with pytest.raises(HubUnavailable):
        resolve(hub, ModelRef(id="Qwen/Qwen3-8B", revision="main"))
    assert resolve(hub, "Qwen/Qwen3-8B").source == "catalogue"
    assert len(hub.requests) == 1


def test_the_hub_may_be_preferred_to_the_catalogue(hub: HubServer) -> None:
    hub.add("Qwen/Qwen3-8B", {**LLAMA, "num_hidden_layers": 99})
    assert resolve(hub, "Qwen/Qwen3-8B", prefer="hub").num_layers == 99
    hub.behaviour = moods.status(503)
    facts = resolve(hub, "Qwen/Qwen3-8B", prefer="hub")
    assert facts.source == "catalogue"
    assert any("status 503" in note for note in facts.notes)


@pytest.mark.parametrize(("sent", "remedy"), [(None, "Set GRAPHGATE_HUB_TOKEN"), (SECRET, "Request access")])
def test_a_gated_model_asks_for_a_token(hub: HubServer, sent: str | None, remedy: str) -> None:
    hub.add(ID, LLAMA, token="another")  # noqa: S106 - made up
    with pytest.raises(ModelAccessDenied) as caught:
        resolve(hub, token=sent)
    assert remedy in str(caught.value)
    assert SECRET not in str(caught.value)


def test_the_token_opens_a_gated_model_and_is_logged_nowhere(
    hub: HubServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hub.add(ID, LLAMA, token=SECRET)
    chosen = settings(hub, token=SECRET)
    assert ModelResolver(chosen).resolve(ModelRef(id=ID)).num_layers == 2
    assert hub.requests[0][2] == f"Bearer {SECRET}"
    assert SECRET not in repr(chosen)
    assert caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in "".join(capfd.readouterr())


def test_the_environment_s_proxy_is_used(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(LLAMA).encode()
    hub.behaviour = lambda handler: handler.answer(200, body)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", hub.endpoint)
    facts = ModelResolver(ModelSettings(hub_endpoint="http://hub.invalid")).resolve(ModelRef(id=ID))
    assert facts.num_layers == 2
    assert hub.requests[0][1] == f"http://hub.invalid/{ID}/resolve/main/config.json"


def test_without_a_token_none_is_sent(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)  # of the process, but not of these settings
    hub.add(ID, LLAMA)
    resolve(hub)
    assert hub.requests[0][2] is None


@pytest.mark.parametrize(
    ("status", "expected"), [(401, ModelAccessDenied), (403, ModelAccessDenied), (404, ModelNotFound)]
)
def test_plain_statuses(hub: HubServer, status: int, expected: type[Exception]) -> None:
    hub.behaviour = moods.status(status)
    with pytest.raises(expected):
        resolve(hub)


@pytest.mark.parametrize("status", [400, 418, 500, 502, 503, 504])
def test_other_statuses_are_the_hub_s_own_trouble(hub: HubServer, status: int) -> None:
    hub.behaviour = moods.status(status)
    with pytest.raises(HubUnavailable, match=f"status {status}"):
        resolve(hub)


def test_a_model_that_the_hub_does_not_have_is_not_found(hub: HubServer) -> None:
    with pytest.raises(ModelNotFound) as caught:
        resolve(hub, "Qwen/Qwen3-Next-80B-A3B-Instrct")
    assert "Qwen/Qwen3-Next-80B-A3B-Instruct" in caught.value.remedy


@pytest.mark.parametrize(("header", "seconds"), [("17", 17), ("", None), ("soon", None)])
def test_rate_limits_say_how_long(hub: HubServer, header: str, seconds: int | None) -> None:
    hub.behaviour = moods.status(429, {"Retry-After": header} if header else None)
    with pytest.raises(HubRateLimited) as caught:
        resolve(hub)
    assert caught.value.retry_after == seconds


def test_a_rate_limit_may_be_a_date(hub: HubServer) -> None:
    hub.behaviour = moods.status(429, {"Retry-After": email.utils.formatdate(time.time() + 60, usegmt=True)})
    with pytest.raises(HubRateLimited) as caught:
        resolve(hub)
    assert caught.value.retry_after is not None
    assert 50 <= caught.value.retry_after <= 61


@pytest.mark.parametrize(
    "mood",
    [moods.silent(5), moods.dripping(5, header=True), moods.dripping(5, header=False)],
    ids=["silent", "header", "body"],
)
def test_a_slow_hub_is_given_up_in_time(hub: HubServer, mood: moods.Behaviour) -> None:
    hub.behaviour = mood
    begin = time.monotonic()
    with pytest.raises(HubUnavailable, match=r"within 0\.5 seconds"):
        resolve(hub, timeout_s=0.5)
    assert time.monotonic() - begin < 2.0


def test_a_file_that_is_announced_too_large_is_not_read(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    hub.behaviour = lambda handler: handler.answer(200, b"", headers={"Content-Length": "900000000"})
    with pytest.raises(ConfigTooLarge, match="900,000,000 bytes"):
        resolve(hub)


def test_a_file_that_never_ends_is_cut_at_the_limit(hub: HubServer, tmp_path: Path) -> None:
    hub.behaviour = moods.endless()
    with pytest.raises(ConfigTooLarge):
        resolve(hub, max_config_bytes=1_000_000, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
    ids=["html", "list", "compressed", "cut off", "not http", "nothing"],
)
def test_nonsense_is_the_hub_s_own_trouble(hub: HubServer, answer: bytes) -> None:
    hub.behaviour = moods.raw(answer)
    with pytest.raises(HubUnavailable):
        resolve(hub)


def test_a_published_file_that_is_no_good_is_the_model_s_trouble(hub: HubServer) -> None:
    hub.add(ID, b'{"model_type": "llama", "num_hidden_layers": "many"}')
    with pytest.raises(ConfigUnreadable) as caught:
        resolve(hub)
    assert caught.value.field == "num_hidden_layers"


def test_redirects_within_the_hub_are_followed(hub: HubServer) -> None:
    commit = hub.add("someone/new-name", LLAMA)
    hub.add(ID, LLAMA)

    def moved(handler: moods.HubHandler) -> None:
        hub.behaviour = None
        handler.answer(307, headers={"Location": "/someone/new-name/resolve/main/config.json"})

    hub.behaviour = moved
    assert resolve(hub, token=SECRET).revision == commit
    assert len(hub.requests) == 2


def test_redirects_in_a_circle_end(hub: HubServer) -> None:
    hub.behaviour = lambda handler: handler.answer(302, headers={"Location": handler.path})
    with pytest.raises(HubUnavailable, match="circle"):
        resolve(hub)
    assert len(hub.requests) == 4


def test_redirects_to_another_host_are_not_followed(hub: HubServer) -> None:
    with running_hub() as other:
        other.add(ID, LLAMA)
        hub.behaviour = moods.status(302, {"Location": f"{other.endpoint}/{ID}/resolve/main/config.json"})
        with pytest.raises(HubUnavailable, match="another host"):
            resolve(hub, token=SECRET)
        assert other.requests == []


def test_a_hub_that_is_down(hub: HubServer) -> None:
    endpoint = hub.endpoint
    hub.server_close()
    down = ModelResolver(ModelSettings(hub_endpoint=endpoint, timeout_s=2.0))
    with pytest.raises(HubUnavailable) as caught:
        down.resolve(ModelRef(id=ID))
    assert "local folder" in str(caught.value)
    assert down.resolve(ModelRef(id="Qwen/Qwen3-8B")).source == "catalogue"


def test_the_same_question_is_asked_once(hub: HubServer) -> None:
    hub.add(ID, LLAMA)
    resolver = ModelResolver(settings(hub))
    found: list[ModelFacts] = []
    threads = [threading.Thread(target=lambda: found.append(resolver.resolve(ModelRef(id=ID)))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len({id(facts) for facts in found}) == 1
    assert len(hub.requests) == 1


def test_failures_are_remembered_for_a_while(hub: HubServer) -> None:
    hub.behaviour = moods.status(500)
    resolver = ModelResolver(settings(hub, negative_cache_s=0.2))
    for _ in range(3):
        with pytest.raises(HubUnavailable):
            resolver.resolve(ModelRef(id=ID))
    assert len(hub.requests) == 1
    hub.behaviour = None
    hub.add(ID, LLAMA)
    time.sleep(0.25)
    assert resolver.resolve(ModelRef(id=ID)).num_layers == 2


def test_a_model_that_was_known_stays_known_while_the_hub_is_down(hub: HubServer) -> None:
    commit = hub.add(ID, LLAMA)
    resolver = ModelResolver(settings(hub, refresh_s=0.05))
    first = resolver.resolve(ModelRef(id=ID))
    hub.behaviour = moods.status(502)
    time.sleep(0.06)
    assert resolver.resolve(ModelRef(id=ID)) is first
    assert (first.revision, len(hub.requests)) == (commit, 2)
    hub.behaviour = moods.status(404)
    later = ModelResolver(settings(hub, refresh_s=0.05))
    with pytest.raises(ModelNotFound):
        later.resolve(ModelRef(id=ID))


def test_a_file_that_is_too_large_is_not_asked_for_again_at_once(hub: HubServer) -> None:
    hub.add(ID, b" " * 2000 + b"{}")
    resolver = ModelResolver(settings(hub, max_config_bytes=1000))
    for _ in range(3):
        with pytest.raises(ConfigTooLarge):
            resolver.resolve(ModelRef(id=ID))
    assert len(hub.requests) == 1


def test_what_was_kept_on_disk_answers_without_the_hub(hub: HubServer, tmp_path: Path) -> None:
    commit = hub.add(ID, LLAMA)
    resolve(hub, cache_dir=tmp_path)
    assert resolve(hub, cache_dir=tmp_path).revision == commit
    assert len(hub.requests) == 1
    hub.behaviour = moods.status(500)
    stale = resolve(hub, cache_dir=tmp_path, refresh_s=0.0)
    assert (stale.revision, len(hub.requests)) == (commit, 2)
    assert any("status 500" in note for note in stale.notes)
    offline = resolve(hub, cache_dir=tmp_path, offline=True)
    assert (offline.source, len(hub.requests)) == ("hub", 2)


def test_one_token_s_models_are_not_shown_to_another(hub: HubServer, tmp_path: Path) -> None:
    hub.add(ID, LLAMA, token=SECRET)
    assert resolve(hub, cache_dir=tmp_path, token=SECRET).num_layers == 2
    with pytest.raises(ModelAccessDenied):
        resolve(hub, cache_dir=tmp_path)
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("damage", [b"", b"nonsense", b'{"format": 1}\n{}'])
def test_a_damaged_cache_is_as_good_as_none(hub: HubServer, tmp_path: Path, damage: bytes) -> None:
    hub.add(ID, LLAMA)
    resolve(hub, cache_dir=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage)
    assert resolve(hub, cache_dir=tmp_path).num_layers == 2
    assert len(hub.requests) == 2


def test_the_hub_library_s_own_cache_answers_offline(hub: HubServer, tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--some-model"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "snapshots" / commit / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 5}')
    facts = resolve(hub, offline=True, hub_cache=tmp_path)
    assert (facts.num_layers, facts.revision, hub.requests) == (5, commit, [])


def test_offline_an_unknown_model_says_what_to_do(hub: HubServer) -> None:
    with pytest.raises(HubUnavailable, match="offline mode") as caught:
        resolve(hub, offline=True)
    assert "config itself" in caught.value.remedy
    assert hub.requests == []
