"""The tests' own PostgreSQL does what a test needs of it."""

from __future__ import annotations

import psycopg

from api_tests.postgres import running_postgres


def test_what_was_committed_outlives_a_kill() -> None:
    with running_postgres(durable=True) as server:
        address = server.fresh_database().replace("+psycopg", "")
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
            connection.commit()
            server.kill()
        assert not server.running
        server.start()
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]


def test_each_test_has_an_empty_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)
