"""One launch in, one verdict out; kept, listed, read again."""

from __future__ import annotations

import httpx
import pytest

from api_tests.server import RunningServer
from api_tests.service.launches import ACCEPTED, ADJUSTED, FULL_PREFILL, PLAIN, REJECTED, validate


def test_full_prefill_asked_for_on_a_hybrid_model_is_rejected(api: httpx.Client) -> None:
    answer = validate(api, REJECTED)
    assert answer.status_code == 200
    found = answer.json()
    assert found["verdict"] == "rejected"
    assert found["effective"] is None
    (finding,) = [f for f in found["findings"] if f["severity"] == "error"]
    assert (finding["rule"], finding["covers"]) == ("GG101", ["HYBRID_LINEAR_FULL_PREFILL"])
    for named in ("Qwen/Qwen3-Next-80B-A3B-Instruct", "GDN", "--cuda-graph-config"):
        assert named in finding["message"]
    assert finding["remedy"]


def test_full_prefill_from_defaults_is_switched_off(api: httpx.Client) -> None:
    found = validate(api, ADJUSTED).json()
    assert found["verdict"] == "adjusted"
    assert found["effective"]["graph"]["prefill"]["backend"] == "disabled"
    assert found["prediction"]["graph"]["prefill"]["backend"] == "full"
    assert [f["severity"] for f in found["findings"] if f["rule"] == "GG101"] == ["warning"]
    assert any(d["layer"] == "guard" and d["key"] == "prefill.backend" for d in found["ledger"])


def test_a_model_without_linear_attention_keeps_full_prefill(api: httpx.Client) -> None:
    found = validate(api, ACCEPTED).json()
    assert found["verdict"] == "accepted"
    assert found["effective"]["graph"]["prefill"]["backend"] == "full"


def test_strict_answers_a_rejected_launch_with_a_problem_that_carries_the_verdict(api: httpx.Client) -> None:
    answer = validate(api, REJECTED, strict="true")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "/problems/launch-rejected"
    assert problem["validation"]["verdict"] == "rejected"
    assert api.get(f"/v1/validations/{problem['validation']['id']}").json() == problem["validation"]


@pytest.mark.parametrize("body", [ACCEPTED, ADJUSTED])
def test_strict_lets_the_others_pass(api: httpx.Client, body: dict[str, object]) -> None:
    assert validate(api, body, strict="true").status_code == 200


def test_an_answer_is_kept_as_it_was_given(api: httpx.Client) -> None:
    given = validate(api, REJECTED)
    again = api.get(f"/v1/validations/{given.json()['id']}")
    assert again.content == given.content
    assert again.json()["request"] == REJECTED


def test_lists_are_newest_first_and_every_answer_is_on_exactly_one_page(api: httpx.Client) -> None:
    made = [validate(api, ACCEPTED).json()["id"] for _ in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(100):
        page = api.get("/v1/validations", params={"limit": "2", **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None or made[0] in seen:
            break
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen, reverse=True)
    assert set(made) <= set(seen)


def test_lists_can_be_narrowed_to_a_verdict(api: httpx.Client) -> None:
    rejected, accepted = validate(api, REJECTED).json()["id"], validate(api, ACCEPTED).json()["id"]
    items = api.get("/v1/validations", params={"verdict": "rejected", "limit": "200"}).json()["items"]
    assert {item["verdict"] for item in items} == {"rejected"}
    assert rejected in {item["id"] for item in items}
    assert accepted not in {item["id"] for item in items}
    assert next(item for item in items if item["id"] == rejected)["rules"] == ["GG101"]


def test_an_inline_config_may_hold_infinity_and_the_answer_is_still_json(api: httpx.Client) -> None:
    body = (
        '{"model": {"config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2,'
        ' "hidden_size": 64, "num_attention_heads": 4, "rope_theta": Infinity}}}'
    )
    answer = api.post("/v1/validations", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert "Infinity," not in answer.text.replace('"Infinity"', "")
    assert answer.json()["request"]["model"]["config"]["rope_theta"] == "Infinity"
    assert answer.json()["model"]["source"] == "inline"


def test_a_local_folder_below_the_allowed_roots_is_read(api: httpx.Client, server: RunningServer) -> None:
    folder = server.data.parent / "models" / "mine"
    folder.mkdir(exist_ok=True)
    config = '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 3, "hidden_size": 64}'
    (folder / "config.json").write_text(config)
    answer = validate(api, {"model": {"path": str(folder)}})
    assert answer.status_code == 200
    assert (answer.json()["model"]["source"], answer.json()["model"]["layers"]) == ("local", 3)


def test_a_launch_command_names_the_model(api: httpx.Client) -> None:
    line = "SGLANG_X=1 python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --tp-size 8"
    found = validate(api, {"launch_command": line}).json()
    assert found["model"]["id"] == PLAIN["id"]
    assert found["prediction"]["args"]["tp_size"] == 8


def test_a_release_newer_than_those_known_says_what_answers(api: httpx.Client) -> None:
    newest = api.get("/v1/releases").json()["items"][-1]["version"]
    found = validate(api, {"model": PLAIN, "engine": {"version": "0.99.0"}}).json()
    assert found["engine"]["version"] == newest
    assert any("0.99.0" in note and newest in note for note in found["notes"])


ENGINE_REFUSES = [
    ({"prefill": {"backend": "brekable"}}, "resolve", "breakable"),
    ({"prefil": {"backend": "full"}}, "parse", "prefill"),
    ({"prefill": {"backnd": "full"}}, "parse", "backend"),
    ("{nonsense", "parse", "must be JSON"),
]
"""What SGLang 0.5.23 refuses, at which stage, and a word of its own message."""


@pytest.mark.parametrize(("config", "stage", "word"), ENGINE_REFUSES)
def test_what_the_engine_refuses_is_a_verdict_not_a_problem(
    api: httpx.Client, config: object, stage: str, word: str
) -> None:
    answer = validate(api, {"model": PLAIN, "cuda_graph_config": config})
    assert answer.status_code == 200
    found = answer.json()
    assert (found["verdict"], found["prediction"]["outcome"]) == ("rejected", "refused")
    assert found["prediction"]["error"]["stage"] == stage
    assert word in found["prediction"]["error"]["message"]


def test_an_unknown_option_is_the_engines_refusal(api: httpx.Client) -> None:
    found = validate(api, {"model": PLAIN, "arguments": ["--tp-sise", "8"]}).json()
    assert found["verdict"] == "rejected"
    assert "--tp-sise" in found["prediction"]["error"]["message"]


def test_arguments_as_an_object_mean_what_the_list_means(api: httpx.Client) -> None:
    as_list = validate(api, {"model": PLAIN, "arguments": ["--tp-size", "4", "--disable-cuda-graph"]}).json()
    as_object = validate(api, {"model": PLAIN, "arguments": {"tp_size": 4, "disable_cuda_graph": True}}).json()
    assert as_list["prediction"] == as_object["prediction"]
    assert as_list["prediction"]["args"]["tp_size"] == 4


def test_defaults_do_not_lock(api: httpx.Client) -> None:
    asked = validate(api, {"model": PLAIN, "cuda_graph_config": FULL_PREFILL}).json()
    preferred = validate(api, {"model": PLAIN, "defaults": FULL_PREFILL}).json()
    assert ["prefill", "backend"] in asked["prediction"]["locked"]
    assert ["prefill", "backend"] not in preferred["prediction"]["locked"]
