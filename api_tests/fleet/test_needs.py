"""Which worker a capture goes to; and the database says the same as the code."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from api_tests.fleet.parts import clean
from api_tests.material import ROOT
from api_tests.service.test_queue import accept, worker
from engine.capture.options import CaptureOptions
from service.fleet.needs import Ability, Device, Need, kind_for, kind_of
from service.store.captures import Captures
from service.store.census import take_census
from service.store.database import Database
from service.store.fleet import Lease, WaitingList, WorkerRow, Workers
from service.store.migrate import migrate
from service.store.queue import can_run
from service.store.tables import captures

H200, H100, CPU = Ability("h200", 143_771), Ability("h100", 81_559), Ability("cpu", 16_000)
DEVICES: tuple[Device, ...] = ("any", "cpu", "gpu")
NEEDS = [
    Need(device, gpu, memory)
    for device, gpu, memory in itertools.product(DEVICES, (None, "h200", "h100"), (None, 8_000, 100_000))
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "graphgate.sqlite")
    migrate(database)
    yield database
    database.close()


@pytest.mark.parametrize(
    ("need", "workers", "kind"),
    [
        (Need(), [CPU, H100], "h100"),
        (Need(), [CPU], "cpu"),
        (Need("any", "h200"), [CPU, H100, H200], "h200"),
        (Need("any", "b200"), [CPU, H100], "h100"),
        (Need("cpu"), [H200, CPU], "cpu"),
        (Need("cpu"), [H200], "h200"),
        (Need("gpu"), [CPU], None),
        (Need("gpu", "h200"), [H100, CPU], None),
        (Need("gpu", memory_mib=100_000), [H100, H200], "h200"),
        (Need("cpu", memory_mib=20_000), [CPU], None),
        (Need(), [], None),
    ],
)
def test_a_capture_goes_to_the_best_of_those_that_can_run_it(
    need: Need, workers: list[Ability], kind: str | None
) -> None:
    assert kind_for(need, workers) == kind


@pytest.mark.parametrize(
    ("request_body", "options", "need"),
    [
        ({}, CaptureOptions(), Need()),
        ({"hardware": {"gpu": "h200"}}, CaptureOptions(device="cuda"), Need("gpu", "h200")),
        ({"hardware": {"gpu": "NVIDIA A100-SXM4-40GB"}}, CaptureOptions(), Need("any", "a100-40")),
        ({"hardware": {"gpu": "H200"}}, CaptureOptions(device="cpu"), Need("cpu")),
        ({"hardware": {"count": 8}}, CaptureOptions(device="cuda", memory_mib=9), Need("gpu", None, 9)),
    ],
)
def test_only_what_a_request_says_binds_it(
    request_body: dict[str, object], options: CaptureOptions, need: Need
) -> None:
    assert Need.of(request_body, options) == need


def test_a_kind_is_the_table_s_name_of_what_the_driver_says() -> None:
    assert [kind_of(name) for name in ("NVIDIA H200", "Tesla T4", "Quadro RTX 8000", None)] == [
        "h200",
        "t4",
        "quadro-rtx-8000",
        "cpu",
    ]


@pytest.mark.parametrize("able", [H200, H100, CPU, Ability("h200"), Ability("cpu")], ids=str)
def test_the_database_gives_a_worker_what_it_can_run_and_nothing_else(database: Database, able: Ability) -> None:
    needs = {accept(database, need=need): need for need in NEEDS}
    with database.read() as connection:
        found = set(connection.execute(select(captures.c.id).where(can_run(able))).scalars())
    assert found == {capture for capture, need in needs.items() if need.met_by(able)}


def test_what_waits_is_said_once_and_taken_back(database: Database) -> None:
    capture = accept(database, need=Need("gpu", "h200"))
    waiting = WaitingList(database)
    for _ in range(3):
        waiting.say(capture, "h200")
    assert take_census(database, silent_s=15).unserved == {"h200": 1}
    waiting.say(capture, None)
    assert take_census(database, silent_s=15).unserved == {}
    _, events = Captures(database).news(capture, after=0)
    assert [(event.name, event.data.get("waiting_for")) for event in events] == [
        ("queued", None),
        ("waiting", "h200"),
        ("waiting", None),
    ]


def test_a_silent_worker_counts_for_nothing_and_is_forgotten_later(database: Database) -> None:
    row = WorkerRow(
        id="w", kind="h200", gpu="NVIDIA H200", memory_mib=9, driver=None, torch="2.13.0", version="1", started_at=""
    )
    Workers(database, silent_s=60).beat(row, "cap_1")
    assert Workers(database, silent_s=60).abilities() == [Ability("h200", 9)]
    time.sleep(0.02)
    late = Workers(database, silent_s=0.01)
    assert late.abilities() == []
    assert [(found["alive"], found["capture_id"]) for found in late.all()] == [(False, "cap_1")]
    late.forget(after_s=0.01)
    assert late.all() == []


def test_one_holder_has_a_lease_until_it_leaves_or_goes_silent(database: Database) -> None:
    one, other = (Lease(database, "reconciler", name, for_s=0.2) for name in ("one", "other"))
    assert (one.take(), other.take(), one.take()) == (True, False, True)
    one.leave()
    assert (other.take(), one.take()) == (True, False)
    time.sleep(0.25)
    assert one.take(), "the other one went silent"


def test_one_round_by_hand_takes_back_what_a_dead_worker_held(database: Database, tmp_path: Path) -> None:
    capture = accept(database)
    assert worker(database, "w", lease_s=0.01).claim() is not None
    time.sleep(0.05)

    def reconcile() -> str:
        return subprocess.run(
            [sys.executable, "-m", "service", "reconcile"],
            cwd=ROOT,
            env=clean({"GRAPHGATE_DATA": str(tmp_path)}),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert reconcile() == "1 taken back from silent workers, 0 sent\n"
    assert Captures(database).state(capture) == "queued"
    assert Lease(database, "reconciler", "somebody", for_s=60).take()
    assert reconcile() == "another process holds the lease\n"
