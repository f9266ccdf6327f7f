"""A worker that cannot renew its lease ends what it runs before anybody else may have it."""

from __future__ import annotations

from pathlib import Path

from api_tests.fleet.device import CPU, make_device, runs
from api_tests.fleet.parts import answers, api_part, client, started, wait_until, worker_part
from api_tests.postgres import running_postgres
from api_tests.service.launches import PLAIN, wait_for_end
from api_tests.service.test_durability import gone


def test_a_capture_ends_with_its_lease_while_the_database_is_away(tmp_path: Path) -> None:
    with running_postgres(durable=True) as postgres:
        settings = {
            "GRAPHGATE_DATA": str(tmp_path / "data"),
            "GRAPHGATE_DATABASE_URL": postgres.fresh_database(),
            "GRAPHGATE_DATABASE_WAIT_S": "2",
            "GRAPHGATE_EMBEDDED_WORKER": "off",
            "GRAPHGATE_CAPTURE_LEASE_S": "2",
        }
        slow = make_device(tmp_path / "slow", CPU, effects=tmp_path / "effects", least_s=120, most_s=120)
        quick = make_device(tmp_path / "quick", CPU, effects=tmp_path / "effects")
        api_process, url = api_part(tmp_path, settings)
        cut_off = worker_part(tmp_path, {**settings, "GRAPHGATE_WORKER_PYTHON": str(slow)}, "cut-off")
        other = worker_part(tmp_path, {**settings, "GRAPHGATE_WORKER_PYTHON": str(quick)}, "other")
        with started(api_process, cut_off), client(url) as api:
            wait_until(lambda: answers(api), "the API answers", part=api_process)
            capture = api.post("/v1/captures", json={"model": PLAIN}).json()["id"]
            (begun,) = wait_until(lambda: runs(tmp_path / "effects"), "it runs", part=cut_off)
            postgres.kill()
            assert gone(begun["pid"], 60), "the lease has run out, and the capture goes on"
            assert cut_off.running
            cut_off.kill()
            postgres.start()
            with started(other):
                wait_until(lambda: api.get("/readyz").status_code == 200, "the API has its database again")
                ended = wait_for_end(api, capture)
        assert (ended["state"], ended["attempts"]) == ("succeeded", 2)
        assert [run["what"] for run in runs(tmp_path / "effects")] == ["begin", "begin", "end"]
