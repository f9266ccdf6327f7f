"""Every change of state and every refusal is in the audit log, as a row and as a line, and no secret is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from api_tests.security.guarded import Guarded, guarded_server, keys, make_key
from api_tests.service.launches import ACCEPTED, SMALL_CAPTURE
from service.security.keys import prefix_of
from service.settings import Settings
from service.store.audit import Audit, AuditEntry
from service.store.database import now
from service.store.fleet import WorkerRow, Workers
from service.store.opening import open_database


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a few requests leave behind: the entries, oldest first, the log, and the keys."""
    data = tmp_path_factory.mktemp("audit")
    words = {"admin": ("--scope", "admin"), "one": ("--scope", "capture")}
    with guarded_server(data, words, GRAPHGATE_EMBEDDED_WORKER="off") as guarded:
        with guarded.client("one") as one:
            body = {**ACCEPTED, "capture": SMALL_CAPTURE}
            made = one.post("/v1/captures", json=body, headers={"X-Request-ID": "the-request"}).json()["id"]
            one.delete(f"/v1/captures/{made}")
            one.get("/v1/audit")
        with guarded.client() as nobody:
            nobody.get("/v1/rules", headers={"X-API-Key": "gg_aaaaaaaa_" + "A" * 43})
        keys(data, "revoke", guarded.keys["one"])
        with guarded.client("admin") as admin:
            entries = pages(admin, 3)
            limited = admin.get("/v1/audit", params={"outcome": "denied", "action": "access"}).json()["items"]
    return {
        "entries": entries[::-1],
        "denied": limited,
        "capture": made,
        "keys": guarded.keys,
        "log": guarded.server.log.read_text(),
    }


def pages(admin: httpx.Client, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        params = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = admin.get("/v1/audit", params=params).json()
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_each_change_and_each_refusal_is_there_once_in_order(story: dict[str, Any]) -> None:
    one = f"key:{prefix_of(story['keys']['one'])}"
    told = [(entry["action"], entry["outcome"], entry["actor"], entry["object"]) for entry in story["entries"]]
    cli = told[0][2]
    assert cli.startswith("cli:")
    assert told == [
        ("key.created", "done", cli, f"key:{prefix_of(story['keys']['admin'])}"),
        ("key.created", "done", cli, one),
        ("capture.accepted", "done", one, story["capture"]),
        ("capture.cancelled", "done", one, story["capture"]),
        ("access", "denied", one, "GET /v1/audit"),
        ("access", "denied", "unknown", "GET /v1/rules"),
        ("key.revoked", "done", cli, one),
    ]
    accepted = story["entries"][2]
    assert (accepted["request_id"], accepted["address"]) == ("the-request", "127.0.0.1")
    assert {entry["action"] for entry in story["denied"]} == {"access"}
    assert len(story["denied"]) == 2


def test_the_log_has_the_same(story: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in story["log"].splitlines() if '"graphgate.audit"' in line]
    assert [line["audit"]["action"] for line in lines] == ["capture.accepted", "capture.cancelled", "access", "access"]
    assert lines[0]["audit"]["request_id"] == "the-request"


def test_no_key_is_in_it(story: dict[str, Any]) -> None:
    text = json.dumps(story["entries"]) + story["log"]
    for key in (*story["keys"].values(), "A" * 43):
        assert key not in text


def test_only_admins_read_it(guarded: Guarded) -> None:
    for name in ("alice", "worker"):
        with guarded.client(name) as client:
            assert client.get("/v1/audit").status_code == 403


def test_a_capture_that_was_cancelled_before_is_not_told_of_again(guarded: Guarded) -> None:
    with guarded.client("alice") as alice, guarded.client("admin") as admin:
        made = alice.post("/v1/captures", json={**ACCEPTED, "capture": SMALL_CAPTURE}).json()["id"]
        assert [alice.delete(f"/v1/captures/{made}").status_code for _ in range(2)] == [200, 200]
        entries = [entry for entry in pages(admin, 200) if entry["object"] == made]
    assert [entry["action"] for entry in entries] == ["capture.cancelled", "capture.accepted"]


def test_a_worker_is_told_of_when_it_registers_and_not_at_every_beat(tmp_path: Path) -> None:
    database = open_database(Settings(data=tmp_path), connections=1)
    row = WorkerRow(
        id="here:1:a",
        kind="h200",
        gpu="NVIDIA H200",
        memory_mib=1,
        driver="1",
        torch="2",
        version="0",
        started_at=now(),
    )
    for _ in range(3):
        Workers(database, silent_s=10).beat(row)
    entries = Audit(database).page(limit=10, before=None, action="worker.registered", actor=None, outcome="done")
    assert [entry["object"] for entry in entries] == ["here:1:a"]
    database.close()


def test_what_is_old_is_dropped(tmp_path: Path) -> None:
    database = open_database(Settings(data=tmp_path), connections=1)
    audit = Audit(database)
    audit.add(AuditEntry(actor="key:one", action="capture.accepted"))
    assert audit.forget("2026-01-01T00:00:00.000Z") == 0
    assert audit.forget("9999-01-01T00:00:00.000Z") == 1
    assert audit.page(limit=10, before=None, action=None, actor=None, outcome=None) == []
    database.close()


def test_a_key_is_named_by_its_prefix(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one", "--scope", "validate")
    assert key not in keys(tmp_path, "revoke", key).out
