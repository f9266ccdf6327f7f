"""The broker comes and goes, forgets and repeats itself; the row in the database is what counts."""

from __future__ import annotations

from api_tests.fleet.device import CPU
from api_tests.fleet.fleets import Fleet
from api_tests.fleet.parts import started, wait_until
from service.fleet.broker import Broker


def test_captures_are_accepted_and_run_while_the_broker_is_down(fleet: Fleet) -> None:
    with started(fleet.worker("down", CPU)):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        fleet.redis.kill()
        begun = fleet.begin(device="cpu")
        assert fleet.ended(begun)["state"] == "succeeded", "the worker looks into the database"
        fleet.redis.start()
        again = fleet.begin(device="cpu")
        assert fleet.ended(again)["state"] == "succeeded"
        assert (len(fleet.runs(begun)), len(fleet.runs(again))) == (1, 1)


def test_what_the_broker_forgot_is_sent_again(fleet: Fleet) -> None:
    with started(fleet.worker("forgets", CPU, most_s=1.0)):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        begun = [fleet.begin(device="cpu") for _ in range(4)]
        wait_until(lambda: fleet.runs(begun[0]), "the first one runs")
        wait_until(lambda: fleet.redis.ask("LLEN", "capture.cpu") == ":3", "the others are with the broker")
        assert fleet.redis.ask("FLUSHALL") == "+OK"
        assert [fleet.ended(capture)["state"] for capture in begun] == ["succeeded"] * 4
        assert [len(fleet.runs(capture)) for capture in begun] == [1] * 4
        assert "they are sent again" in fleet.server.log.read_text()


def test_a_message_that_comes_twice_has_no_second_effect_and_nonsense_has_none(fleet: Fleet) -> None:
    with started(fleet.worker("twice", CPU, most_s=0.5)):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        begun = fleet.begin(device="cpu")
        with Broker(fleet.redis.url).sending() as send:
            for _ in range(3):
                send(begun["id"], "capture.cpu")
            send("cap_" + "0" * 28, "capture.cpu")
        fleet.redis.ask("LPUSH", "capture.cpu", "nonsense")
        fleet.redis.ask("LPUSH", "capture.cpu", '{"body":1}')
        assert fleet.ended(begun)["state"] == "succeeded"
        after = fleet.begin(device="cpu")
        assert fleet.ended(after)["state"] == "succeeded"
        assert len(fleet.runs(begun)) == 1
        wait_until(lambda: fleet.redis.ask("LLEN", "capture.cpu") == ":0", "nothing is left in the queue")


def test_a_killed_workers_capture_goes_to_another_long_before_the_broker_would_give_it(fleet: Fleet) -> None:
    killed = fleet.worker("killed", CPU, most_s=30)
    with started(killed):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        begun = fleet.begin(device="cpu")
        wait_until(lambda: fleet.runs(begun), "it runs")
        killed.kill()
    with started(fleet.worker("heir", CPU)):
        ended = fleet.ended(begun)
    assert (ended["state"], ended["attempts"]) == ("succeeded", 2)
    assert "went silent during attempt 1" in fleet.events(begun)


def test_a_capture_that_loses_three_workers_is_dead_and_says_why(fleet: Fleet) -> None:
    begun = fleet.begin(device="cpu")
    for attempt in range(1, 4):
        doomed = fleet.worker(f"doomed-{attempt}", CPU, most_s=30)
        with started(doomed):
            wait_until(lambda: len(fleet.runs(begun)) == attempt, f"attempt {attempt} runs")  # noqa: B023 - at once
    ended = fleet.ended(begun)
    assert (ended["state"], ended["attempts"], ended["report"]) == ("dead", 3, None)
    assert "went silent during attempt 3" in ended["reason"]


def test_a_capture_is_cancelled_in_every_state(fleet: Fleet) -> None:
    waiting = fleet.begin(device="cpu")
    assert fleet.api.delete(f"/v1/captures/{waiting['id']}").json()["state"] == "cancelled"
    worker = fleet.worker("cancels", CPU, most_s=30)
    with started(worker):
        wait_until(lambda: fleet.kinds() == ["cpu"], "the worker registers")
        running, sent = fleet.begin(device="cpu"), fleet.begin(device="cpu")
        wait_until(lambda: fleet.runs(running), "the first one runs")
        assert fleet.api.delete(f"/v1/captures/{sent['id']}").json()["state"] == "cancelled"
        assert fleet.api.delete(f"/v1/captures/{running['id']}").status_code == 202
        assert fleet.ended(running)["state"] == "cancelled"
        lost = fleet.begin(device="cpu")
        wait_until(lambda: fleet.runs(lost), "the third one runs")
        between = fleet.begin(device="cpu")
        worker.kill()
        assert fleet.api.delete(f"/v1/captures/{lost['id']}").status_code in (200, 202)
        assert fleet.ended(lost)["state"] == "cancelled", "nobody runs it any more"
        assert fleet.api.delete(f"/v1/captures/{between['id']}").json()["state"] == "cancelled"
    with started(fleet.worker("after", CPU)):
        assert fleet.ended(fleet.begin(device="cpu"))["state"] == "succeeded"
    assert (fleet.runs(waiting), fleet.runs(sent), fleet.runs(between)) == ([], [], [])
    assert len(fleet.runs(lost)) == 1
