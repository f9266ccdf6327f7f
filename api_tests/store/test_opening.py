"""A database that cannot be used is said in one sentence, without its password."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.postgres import PASSWORD
from api_tests.server import free_port
from api_tests.service.test_durability import start_fails
from service.store.address import BadAddress, address_of
from service.store.database import Database
from service.store.migrate import migrate, newest_form


def test_the_password_is_in_no_text_of_an_address() -> None:
    address = address_of(f"postgresql://me:{PASSWORD}@db.example:5433/graphs?sslmode=require&password={PASSWORD}")
    assert address.file is None
    assert str(address) == "postgresql+psycopg://me:***@db.example:5433/graphs"
    assert PASSWORD not in repr(address)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"mysql://me:{PASSWORD}@h/db", "mysql cannot be used"),
        (f"postgresql://me:{PASSWORD}@h", "names no database"),
        (f"postgresql://me:{PASSWORD}@h:port/db", "no database URL"),
        (PASSWORD, "no database URL"),
        ("sqlite://", "sqlite cannot be used"),
    ],
)
def test_what_is_no_usable_address_is_said_without_repeating_it(text: str, says: str) -> None:
    with pytest.raises(BadAddress, match=says) as caught:
        address_of(text)
    assert PASSWORD not in str(caught.value)


def test_a_bad_address_names_its_setting_at_the_start(tmp_path: Path) -> None:
    said = start_fails(tmp_path, GRAPHGATE_DATABASE_URL=f"mysql://me:{PASSWORD}@h/db")
    assert "GRAPHGATE_DATABASE_URL" in said
    assert PASSWORD not in said


def test_a_server_that_is_not_there_is_named_at_the_start(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://me:{PASSWORD}@127.0.0.1:{free_port()}/db"
    said = start_fails(tmp_path, GRAPHGATE_DATABASE_URL=url, GRAPHGATE_DATABASE_START_S="0")
    assert "refused" in said
    assert "GRAPHGATE_DATABASE_URL" in said
    assert PASSWORD not in said


def test_a_wrong_password_is_not_waited_for(tmp_path: Path, postgres_url: str) -> None:
    wrong = postgres_url.replace(PASSWORD, "wrong")
    said = start_fails(tmp_path, GRAPHGATE_DATABASE_URL=wrong, GRAPHGATE_DATABASE_START_S="500")
    assert "password authentication failed" in said


def test_a_newer_database_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    database = Database(address_of(postgres_url))
    migrate(database)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    assert "newer graphgate" in start_fails(tmp_path, GRAPHGATE_DATABASE_URL=postgres_url)


def test_without_the_driver_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from service.server import main; sys.argv = ['', '127.0.0.1', '1']; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"GRAPHGATE_DATA": str(tmp_path), "GRAPHGATE_DATABASE_URL": "postgresql://me@127.0.0.1/db"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert "pip install 'graphgate[fleet]'" in done.stderr
    assert "Traceback" not in done.stderr


def _migrate(text: str) -> str:
    database = Database(address_of(text))
    migrate(database)
    with database.read() as connection:
        found = str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())
    database.close()
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_start_at_the_same_time_migrate_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = f"sqlite:///{tmp_path}/new/graphgate.sqlite"
    if kind == "postgresql":
        text = request.getfixturevalue("postgres_url")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(_migrate, [text] * 3, chunksize=1) == [newest_form()] * 3
