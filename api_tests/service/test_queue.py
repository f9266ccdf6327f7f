"""The queue in the database, between workers that come, go silent, and come back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from service.fleet.needs import ANYWHERE, Need
from service.store.captures import Captures, QueueFull
from service.store.database import Database, new_id, now
from service.store.filters import Filter
from service.store.migrate import migrate, newest_form
from service.store.queue import CaptureQueue
from service.store.validations import ValidationRow, Validations


def accept(database: Database, queue: int = 100, need: Need = ANYWHERE) -> str:
    """A waiting capture; its id."""
    validation, capture = new_id("val"), new_id("cap")
    Validations(database).add(
        ValidationRow(
            id=validation,
            created_at=now(),
            verdict="accepted",
            summary="",
            model="a/b",
            release="0.5.23",
            gpu="H200",
            rules=(),
            body="{}",
        )
    )
    Captures(database).add(identity=capture, validation_id=validation, options={}, job="{}", queue=queue, need=need)
    return capture


def worker(database: Database, name: str, *, lease_s: float = 60, attempts: int = 2) -> CaptureQueue:
    """The queue of the worker of that name."""
    return CaptureQueue(database, name, lease_s=lease_s, attempts=attempts)


def test_each_capture_is_claimed_once_however_many_workers_ask(database: Database) -> None:
    waiting = {accept(database) for _ in range(20)}
    claimed: list[str] = []

    def work(name: str) -> None:
        queue = worker(database, name)
        while (claim := queue.claim()) is not None:
            claimed.append(claim.id)

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(waiting)


def test_the_oldest_is_claimed_first(database: Database) -> None:
    first = accept(database)
    time.sleep(0.005)
    second = accept(database)
    queue = worker(database, "w")
    claims = [queue.claim(), queue.claim(), queue.claim()]
    assert [claim.id if claim else None for claim in claims] == [first, second, None]


def test_a_silent_workers_capture_goes_to_another_and_its_late_report_counts_for_nothing(database: Database) -> None:
    capture = accept(database)
    silent, other = worker(database, "silent", lease_s=0.05), worker(database, "other")
    lost = silent.claim()
    assert lost is not None
    assert other.claim() is None
    time.sleep(0.1)
    assert other.recover() == 1
    again = other.claim()
    assert again is not None
    assert (again.id, again.attempt) == (capture, 2)
    assert not silent.keep(lost)
    assert not silent.finish(lost, "succeeded", report={"late": True}, reason=None)
    assert other.finish(again, "succeeded", report={"mine": True}, reason=None)
    ended = Captures(database).get(capture)
    assert ended is not None
    assert (ended["state"], ended["report"]) == ("succeeded", {"mine": True})


def test_a_capture_that_kills_its_workers_is_given_up(database: Database) -> None:
    capture = accept(database)
    queue = worker(database, "w", lease_s=0.02, attempts=2)
    for _ in range(2):
        assert queue.claim() is not None
        time.sleep(0.05)
        queue.recover()
    assert queue.claim() is None
    ended = Captures(database).get(capture)
    assert ended is not None
    assert ended["state"] == "dead"
    assert "attempt 2" in ended["reason"]


def test_a_kept_lease_is_not_recovered(database: Database) -> None:
    accept(database)
    queue = worker(database, "w", lease_s=0.3)
    claim = queue.claim()
    assert claim is not None
    for _ in range(4):
        time.sleep(0.1)
        assert queue.keep(claim)
        assert queue.recover() == 0


def test_an_interrupted_capture_goes_back_without_counting_an_attempt(database: Database) -> None:
    capture = accept(database)
    queue = worker(database, "w")
    first = queue.claim()
    assert first is not None
    queue.give_back(first, "stopping")
    again = worker(database, "x").claim()
    assert again is not None
    assert (again.id, again.attempt) == (capture, 1)
    assert again.fence > first.fence, "what the first attempt still says must count for nothing"


def test_cancelling_a_running_capture_reaches_its_worker_even_if_that_one_is_lost(database: Database) -> None:
    capture = accept(database)
    queue = worker(database, "w", lease_s=0.05)
    claim = queue.claim()
    assert claim is not None
    assert Captures(database).cancel(capture) == "running"
    assert not queue.keep(claim)
    time.sleep(0.1)
    assert queue.recover() == 1
    assert Captures(database).state(capture) == "cancelled"


def test_a_full_queue_takes_nothing_more(database: Database) -> None:
    accept(database, queue=1)
    with pytest.raises(QueueFull):
        accept(database, queue=1)
    assert len(Captures(database).page(Filter(), limit=10, before=None)) == 1


def test_processes_that_start_at_the_same_time_migrate_once(tmp_path: Path) -> None:
    file = tmp_path / "graphgate.sqlite"
    failures: list[BaseException] = []

    def start() -> None:
        database = Database(file)
        try:
            migrate(database)
        except BaseException as error:
            failures.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    database = Database(file)
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all() == [newest_form()]
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


def test_the_migrations_make_the_tables_that_the_code_names(database: Database) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    import service.app  # noqa: F401 - every module that names tables is loaded
    from service.store.tables import metadata

    with database.read() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    assert differences == []
