"""Many processes write into one SQLite file: each waits its turn, and none is told that the database is locked."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

from api_tests.store.entries import answered, captured
from service.store.captures import Captures
from service.store.database import Database
from service.store.migrate import migrate
from service.store.queue import CaptureQueue
from service.store.validations import Validations

PROCESSES = 4
THREADS = 4
EACH = 20


def _write(file: str) -> list[str]:
    """What one process writes, by several threads: answers, and captures that it takes and ends; the answers' ids."""
    database = Database(Path(file), connections=THREADS)
    made: list[str] = []
    failures: list[BaseException] = []

    def work(number: int) -> None:
        queue = CaptureQueue(database, f"w{number}", lease_s=60, attempts=3)
        try:
            for _ in range(EACH):
                validation = answered(database, rules=("GG101",))
                made.append(validation)
                claim = queue.claim(captured(database, validation))
                assert claim is not None
                assert queue.keep(claim, [("step", {"number": number})])
                assert queue.finish(claim, "succeeded", report={"number": number}, reason=None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    if failures:
        raise failures[0]
    return made


def test_processes_and_threads_write_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "graphgate.sqlite"
    database = Database(file)
    migrate(database)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        made = [identity for part in pool.map(_write, [str(file)] * PROCESSES, chunksize=1) for identity in part]
    assert len(set(made)) == PROCESSES * THREADS * EACH
    validations = Validations(database)
    assert all(validations.body(identity) == "{}" for identity in made)
    with database.read() as connection:
        states = connection.exec_driver_sql("SELECT state, count(*) FROM captures GROUP BY state").all()
        numbers = connection.exec_driver_sql(
            "SELECT max(seq), min(n) FROM"
            " (SELECT max(seq) AS seq, count(*) AS n FROM capture_events GROUP BY capture_id)"
        ).one()
    assert [tuple(row) for row in states] == [("succeeded", len(made))]
    assert tuple(numbers) == (4, 4)
    assert Captures(database).state("cap_none") is None
    database.close()
