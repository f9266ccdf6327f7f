"""A capture goes to a worker that can run it, over a real Redis; what nobody can run says so, and waits."""

from __future__ import annotations

from api_tests.fleet.device import CPU, H200, make_device
from api_tests.fleet.fleets import Fleet
from api_tests.fleet.parts import answers, api_part, client, started, wait_until


def test_each_capture_runs_where_it_can(fleet: Fleet) -> None:
    gpu, cpu = fleet.worker("gpu", H200), fleet.worker("cpu", CPU)
    with started(gpu, cpu):
        wait_until(lambda: sorted(fleet.kinds()) == ["cpu", "h200"], "both workers register")
        begun = {
            "auto": fleet.begin(),
            "cuda": fleet.begin(device="cuda"),
            "h200": fleet.begin({"gpu": "H200"}, device="cuda"),
            "cpu": fleet.begin(device="cpu"),
        }
        ended = {name: fleet.ended(capture) for name, capture in begun.items()}
        assert {name: capture["state"] for name, capture in ended.items()} == dict.fromkeys(begun, "succeeded")
        claims = {name: (capture["report"]["claim"], capture["report"]["device"]) for name, capture in ended.items()}
        measured = ("measured", "NVIDIA H200")
        assert claims == {"auto": measured, "cuda": measured, "h200": measured, "cpu": ("emulated", "cpu")}
        assert all(capture["waiting_for"] is None for capture in ended.values())
        assert fleet.redis.ask("HLEN", "unacked") == ":0", "every message was acknowledged"
        (worker,) = [w for w in fleet.api.get("/v1/workers").json()["items"] if w["kind"] == "h200"]
        assert {name: worker[name] for name in H200} == H200
        assert gpu.stop() == 0
        wait_until(lambda: fleet.kinds() == ["cpu"], "the stopped worker is forgotten")


def test_a_capture_that_nobody_can_run_says_for_whom_it_waits_until_somebody_comes(fleet: Fleet) -> None:
    with started(fleet.worker("cpu", CPU)):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        waiting = fleet.begin({"gpu": "H200"}, device="cuda")
        big = fleet.begin(device="cpu", memory_mib=500_000)
        assert (waiting["state"], waiting["waiting_for"]) == ("queued", "h200")
        assert big["waiting_for"] == "cpu with 500000 MiB"
        after = fleet.begin(device="cpu")
        assert fleet.ended(after)["state"] == "succeeded", "others pass what waits"
        assert fleet.get(waiting)["state"] == "queued"
        with started(fleet.worker("gpu", H200)):
            ended = fleet.ended(waiting)
        assert (ended["state"], ended["report"]["device"], ended["waiting_for"]) == ("succeeded", "NVIDIA H200", None)
        assert '"waiting_for":"h200"' in fleet.events(waiting)
        assert fleet.api.delete(f"/v1/captures/{big['id']}").json()["state"] == "cancelled"


def test_a_capture_that_begins_to_wait_later_says_so_too(fleet: Fleet) -> None:
    gpu = fleet.worker("gpu", H200, most_s=20)
    with started(gpu):
        wait_until(lambda: fleet.kinds() == ["h200"], "the worker registers")
        first, second = fleet.begin(device="cuda"), fleet.begin(device="cuda")
        wait_until(lambda: fleet.runs(first), "the first one runs")
        assert fleet.get(second)["waiting_for"] is None
        gpu.kill()
        wait_until(lambda: fleet.get(second)["waiting_for"] == "gpu", "the second one waits for a worker")
        wait_until(lambda: fleet.get(first)["waiting_for"] == "gpu", "the first one too, back in the queue")
        assert fleet.get(first)["attempts"] == 1
    with started(fleet.worker("gpu-again", H200)):
        assert [fleet.ended(capture)["state"] for capture in (first, second)] == ["succeeded", "succeeded"]
    assert "No worker of the kind gpu is there" in fleet.events(second)
    assert [len(fleet.runs(capture)) for capture in (first, second)] == [2, 1]


def test_the_api_s_own_worker_takes_what_is_sent_too(fleet: Fleet) -> None:
    device = make_device(fleet.folder / "own", CPU, effects=fleet.folder / "effects", most_s=0.1)
    own = {"GRAPHGATE_EMBEDDED_WORKER": "on", "GRAPHGATE_WORKER_PYTHON": str(device)}
    server, url = api_part(fleet.folder, {**fleet.settings, **own}, "second-api")
    with started(server), client(url) as second:
        wait_until(lambda: answers(second), "the second API answers", part=server)
        wait_until(lambda: fleet.kinds() == ["cpu"], "its worker registers")
        assert fleet.ended(fleet.begin(device="cpu"))["state"] == "succeeded"
        wait_until(lambda: fleet.redis.ask("LLEN", "capture.cpu") == ":0", "no message is left")
        assert server.stop() == 0
