"""`graphgate keys`: made once, kept as a hash, ended within seconds."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from pathlib import Path

import pytest

from api_tests.cli.command import graphgate
from api_tests.planted import plant
from api_tests.security.guarded import Guarded, keys, make_key
from service.security.keyring import REMEMBERED_S
from service.security.keys import make_key as new_key
from service.security.keys import prefix_of


def test_a_key_has_256_random_bits_and_a_prefix_that_names_it() -> None:
    made = [new_key() for _ in range(50)]
    assert len({key.text for key in made}) == len({key.prefix for key in made}) == 50
    for key in made:
        assert re.fullmatch(r"gg_[a-z2-9]{8}_[A-Za-z0-9_-]{43}", key.text)
        assert prefix_of(key.text) == key.prefix
        assert key.digest == hashlib.sha256(key.text.encode()).hexdigest()


def test_create_list_and_revoke(tmp_path: Path) -> None:
    words = ("--scope", "validate", "--scope", "capture", "--expires", "90d", "--rate", "10/second")
    whole = ("keys", "create", "--name", "ci", *words, "--gpu-seconds", "3600/day")
    made = graphgate(*whole, settings={"GRAPHGATE_DATA": str(tmp_path)})
    key = plant(made.out.strip())
    prefix = prefix_of(key)
    assert prefix is not None
    assert key not in made.err
    assert "validate, capture" in made.err

    listed = keys(tmp_path, "list")
    assert key not in listed.out
    row = next(line for line in listed.out.splitlines() if line.startswith(prefix))
    for part in ("ci", "validate,capture", "10/second", "3600", "never", "until"):
        assert part in row
    (entry,) = keys(tmp_path, "list", "--format", "json").document["keys"]
    assert (entry["prefix"], entry["state"], entry["gpu_seconds"]) == (prefix, "good", 3600)
    assert "digest" not in entry

    assert keys(tmp_path, "revoke", prefix).code == 0
    assert "already" in keys(tmp_path, "revoke", key).out
    assert keys(tmp_path, "list", "--format", "json").document["keys"][0]["state"] == "revoked"


def test_only_the_hash_is_kept(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one", "--scope", "admin")
    for file in tmp_path.glob("graphgate.sqlite*"):
        assert key.encode() not in file.read_bytes()
        assert key[12:].encode() not in file.read_bytes(), "nor the secret alone"
    with sqlite3.connect(tmp_path / "graphgate.sqlite") as database:
        (digest,) = database.execute("SELECT digest FROM api_keys").fetchone()
        actions = database.execute("SELECT action, object, actor FROM audit_log").fetchall()
    database.close()
    assert digest == hashlib.sha256(key.encode()).hexdigest()
    assert [(action, what) for action, what, _ in actions] == [("key.created", f"key:{prefix_of(key)}")]
    assert actions[0][2].startswith("cli:")


@pytest.mark.parametrize(
    "words",
    [
        ("create", "--name", "x"),
        ("create", "--name", "a b", "--scope", "validate"),
        ("create", "--name", "x", "--scope", "root"),
        ("create", "--name", "x", "--scope", "validate", "--expires", "soon"),
        ("create", "--name", "x", "--scope", "validate", "--rate", "fast"),
        ("create", "--name", "x", "--scope", "validate", "--rate", "0/second"),
        ("create", "--name", "x", "--scope", "validate", "--gpu-seconds", "3600"),
        ("revoke", "nothing"),
        (),
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]) or "nothing",
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = keys(tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert "What to change" in done.err


def test_a_revoked_key_stops_working_within_the_stated_time(guarded: Guarded) -> None:
    data = guarded.server.data
    key = make_key(data, "soon-gone", "--scope", "validate")
    with guarded.client() as client:
        client.headers["X-API-Key"] = key
        assert client.get("/v1/rules").status_code == 200
        assert keys(data, "revoke", key).code == 0
        time.sleep(REMEMBERED_S)
        answer = client.get("/v1/rules")
        assert answer.status_code == 401
        assert "revoked" in answer.json()["detail"]


def test_a_key_that_is_made_while_the_server_runs_works_at_once(guarded: Guarded) -> None:
    key = make_key(guarded.server.data, "late", "--scope", "validate")
    with guarded.client() as client:
        assert client.get("/v1/rules", headers={"X-API-Key": key}).status_code == 200


def test_an_expired_key_is_refused_and_says_so(guarded: Guarded) -> None:
    key = make_key(guarded.server.data, "old", "--scope", "validate", "--expires", "1h")
    with sqlite3.connect(guarded.server.data / "graphgate.sqlite") as database:
        prefix = prefix_of(key)
        database.execute("UPDATE api_keys SET expires_at = '2026-01-01T00:00:00.000Z' WHERE prefix = ?", (prefix,))
    database.close()
    with guarded.client() as client:
        answer = client.get("/v1/rules", headers={"X-API-Key": key})
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]


def test_a_key_that_is_used_says_when(guarded: Guarded) -> None:
    with guarded.client("validate") as client:
        assert client.get("/v1/rules").status_code == 200
    end = time.monotonic() + 30
    used = None
    while used is None and time.monotonic() < end:
        listed = keys(guarded.server.data, "list", "--format", "json").document["keys"]
        used = next(key["used_at"] for key in listed if key["name"] == "validate")
    assert used is not None
