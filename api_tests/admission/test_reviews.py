"""The protocol of admission: what is answered to whom, whatever is sent and whatever the hub does."""

from __future__ import annotations

import concurrent.futures
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from api_tests import hub as moods
from api_tests.admission.reviews import Refused, ask, published, review
from api_tests.hub import HubServer
from api_tests.server import RunningServer, running_server

HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
FULL = ("--cuda-graph-backend-prefill", "full")
CONFIG = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "num_hidden_layers": 4,
    "full_attention_interval": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
AN_API_SERVER_S = 10.0
"""How long the tests' API server waits; the stand-in hub hangs for longer."""


def pod(*words: str, model: str = HYBRID, **container: Any) -> dict[str, Any]:
    engine = {
        "name": "engine",
        "image": "lmsysorg/sglang:v0.5.23",
        "command": ["python3", "-m", "sglang.launch_server", "--model-path", model, *words],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        **container,
    }
    selector = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "chat", "namespace": "llm"},
        "spec": {"nodeSelector": selector, "containers": [engine]},
    }


@pytest.fixture(autouse=True)
def _well_behaved_again(hub: HubServer) -> Iterator[None]:
    yield
    hub.behaviour = None


@pytest.fixture
def hanging(hub: HubServer) -> HubServer:
    hub.behaviour = moods.silent(30)
    return hub


def rows(server: RunningServer) -> dict[str, int]:
    """How many rows each table of the server's database has."""
    with closing(sqlite3.connect(f"file:{server.data / 'graphgate.sqlite'}?mode=ro", uri=True)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608 - names of the database itself


def test_the_schemas_refuse_what_kubernetes_refuses() -> None:
    assert published(pod())
    with pytest.raises(Refused):
        published({**pod(), "sepc": {}})


def test_nothing_is_kept_of_a_review(api: httpx.Client, server: RunningServer) -> None:
    before = rows(server)
    assert len(before) > 3
    assert not ask(api, review(pod(*FULL)))["allowed"]
    assert ask(api, review(pod()))["allowed"]
    assert rows(server) == before


def test_the_audit_log_of_the_api_server_learns_the_verdict(api: httpx.Client) -> None:
    said = ask(api, review(pod(*FULL)))["auditAnnotations"]
    assert (said["verdict"], said["rules"]) == ("rejected", "GG101")
    assert said["policy"].startswith("sha256:")
    assert "auditAnnotations" not in ask(api, review({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_what_starts_nothing_is_allowed(api: httpx.Client, operation: str) -> None:
    sent = review(pod(*FULL), operation=operation)
    assert ask(api, sent) == {"uid": sent["request"]["uid"], "allowed": True}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"apiVersion": "admission.k8s.io/v1beta1"}, "apiVersion"),
        ({"apiVersion": "admission.k8s.io/v2"}, "apiVersion"),
        ({"kind": "ConversionReview"}, "kind"),
        ({"request": None}, "request"),
        ({"request": {}}, "request.uid"),
        ({"request": {"uid": "", "operation": "CREATE"}}, "request.uid"),
        ({"request": {"uid": "u", "operation": "PATCH"}}, "request.operation"),
    ],
)
def test_what_is_no_review_is_a_problem(api: httpx.Client, changes: dict[str, Any], field: str) -> None:
    answer = api.post("/v1/admission", json={**review(pod()), **changes})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "/problems/invalid-request"
    assert field in [error["field"] for error in problem["errors"]]


def test_a_wrong_version_is_told_the_right_one(api: httpx.Client) -> None:
    problem = api.post("/v1/admission", json={**review(pod()), "apiVersion": "admission.k8s.io/v1beta1"}).json()
    assert "'admission.k8s.io/v1'" in problem["errors"][0]["suggestion"]


def test_what_a_later_api_server_adds_is_passed_over(api: httpx.Client) -> None:
    sent = review(pod(*FULL), somethingNew={"a": [1]})
    sent["later"] = True
    assert not ask(api, sent)["allowed"]


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        7,
        {},
        {"kind": "Pod"},
        {"kind": "Pod", "metadata": [], "spec": []},
        {"kind": "Pod", "metadata": {"annotations": 3, "labels": [1]}, "spec": {"containers": [None, 3, {"name": 1}]}},
        {"kind": "Pod", "spec": {"containers": [{"name": "a", "command": "sglang", "args": {"a": 1}}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": [1, None, {}], "env": [1, {"name": 3}, {"value": 3}]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sh", "-c", "sglang serve 'x"]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "a b/c d"]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "../../etc/passwd"]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "org/m", "--config", "/etc/passwd"]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "org/m", "\x00"]}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "org/m"] * 3000}]}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve"]}], "nodeSelector": 3, "affinity": [1]}},
        {"spec": {"leaderWorkerTemplate": {"size": "x", "leaderTemplate": 3, "workerTemplate": [1]}}},
        {"kind": "Pod", "spec": {"containers": [{"command": ["sglang", "serve", "org/m"]}] * 200}},
    ],
)
def test_whatever_the_object_is_there_is_an_answer(
    api: httpx.Client, strict_api: httpx.Client, document: Any, hub: HubServer
) -> None:
    """What holds no launch is allowed by both; what cannot be read follows the setting."""
    hub.behaviour = moods.status(404)
    request = {"uid": "u", "operation": "CREATE", "object": document}
    sent = review(document) if isinstance(document, dict) else {**review(None), "request": request}
    answer, strict_answer = ask(api, sent), ask(strict_api, sent)
    assert answer["allowed"]
    assert strict_answer["allowed"] is ("warnings" not in answer)
    for warning in answer.get("warnings", []):
        assert "allowed, but not examined: " in warning
    if not strict_answer["allowed"]:
        assert "GRAPHGATE_ADMISSION_ON_UNKNOWN is deny" in strict_answer["status"]["message"]
        assert {cause["reason"] for cause in strict_answer["status"]["details"]["causes"]} == {"Unknown"}


def test_rules_are_as_strict_as_the_policy_says_for_admission(strict_api: httpx.Client, hub: HubServer) -> None:
    """In the mode ``warn`` nothing is denied because of a rule; what the engine refuses is no rule."""
    hub.add("acme/hybrid", CONFIG)
    warned = ask(strict_api, review(pod(*FULL, model="acme/hybrid")))
    assert warned["allowed"]
    assert any(text.startswith("engine: GG101 hybrid-full-prefill: ") for text in warned["warnings"])
    refused = ask(strict_api, review(pod("--attention-backend", "trtllm_mla", model="acme/hybrid")))
    assert not refused["allowed"]
    assert "TRTLLM MLA backend is only supported on Blackwell GPUs" in refused["status"]["message"]


def test_a_hub_that_hangs_is_not_waited_for(server: RunningServer, hanging: HubServer) -> None:
    with server.client(timeout=AN_API_SERVER_S) as api:
        answer = ask(api, review(pod(*FULL, model="somebody/slow")))
        assert answer["allowed"]
        assert answer["warnings"] == [
            "engine: allowed, but not examined: the model hub cannot be asked (somebody/slow)",
        ]
        known = ask(api, review(pod(*FULL)))
        assert not known["allowed"], "the catalogue knows it"
    assert any("somebody/slow" in path for _, path, _ in hanging.requests)


@pytest.mark.usefixtures("hanging")
def test_the_catalogue_stands_in_for_a_hub_that_hangs_and_the_answer_says_so(strict: RunningServer) -> None:
    with strict.client(timeout=AN_API_SERVER_S) as api:
        answer = ask(api, review(pod(model="Qwen/Qwen3-8B")))
        assert answer["allowed"]
        assert answer["warnings"] == ["engine: the hub could not be asked; examined by the packaged catalogue"]
        denied = ask(api, review(pod(*FULL, model="somebody/slower")))
        assert denied["status"]["message"] == (
            "container engine cannot be examined, and GRAPHGATE_ADMISSION_ON_UNKNOWN is deny: "
            "the model hub cannot be asked (somebody/slower)"
        )


def test_the_answer_that_came_too_late_serves_the_next_review(server: RunningServer, hub: HubServer) -> None:
    hub.add("acme/late", CONFIG)
    gate = threading.Event()
    hub.behaviour = moods.held(gate)
    with server.client(timeout=AN_API_SERVER_S) as api:
        assert ask(api, review(pod(*FULL, model="acme/late")))["allowed"]
        gate.set()
        end = time.monotonic() + 30
        while ask(api, review(pod(*FULL, model="acme/late")))["allowed"]:
            assert time.monotonic() < end, "the hub's answer was not kept"
            time.sleep(0.1)
    assert [path for _, path, _ in hub.requests].count("/acme/late/resolve/main/config.json") == 1


def test_fifty_at_once_are_answered_while_the_hub_hangs(server: RunningServer, hanging: HubServer) -> None:
    """The service's own threads are all taken by look-ups that hang; admission has threads of its own."""
    with server.client() as api, concurrent.futures.ThreadPoolExecutor(66) as room:
        slow = [
            room.submit(api.post, "/v1/validations", json={"model": {"id": f"somebody/held{number}"}})
            for number in range(16)
        ]
        time.sleep(0.5)
        with server.client(timeout=AN_API_SERVER_S) as other:
            asked = [room.submit(ask, other, review(pod(*FULL))) for _ in range(25)]
            asked += [room.submit(ask, other, review(pod(*FULL, model=f"somebody/n{n}"))) for n in range(25)]
            answers = [future.result() for future in asked]
        assert [answer["allowed"] for answer in answers] == [False] * 25 + [True] * 25
        hanging.stopping.set()  # lets the held ones go
        for future in slow:
            future.result()
    hanging.stopping.clear()


@pytest.mark.usefixtures("hanging")
def test_a_shorter_limit_of_the_api_server_is_kept(api: httpx.Client) -> None:
    for limit in ("1s", "300ms", "soon", ""):
        sent = review(pod(model=f"somebody/limit{len(limit)}"))
        answer = api.post("/v1/admission", params={"timeout": limit}, json=sent)
        assert answer.status_code == 200
        assert answer.json()["response"]["allowed"]


def test_a_secret_in_the_launch_is_in_no_answer(api: httpx.Client, server: RunningServer) -> None:
    secret = "sk-" + "planted" * 4
    answer = ask(api, review(pod("--api-key", secret, "--tp-size", secret)))
    assert not answer["allowed"]
    assert "invalid int value" in answer["status"]["message"]
    assert secret not in str(answer)
    assert secret not in server.log.read_text()


def test_there_are_at_most_five_warnings(api: httpx.Client) -> None:
    document = pod()
    engine = document["spec"]["containers"][0]
    document["spec"]["containers"] = [
        {**engine, "name": f"engine-{n}", "image": "acme/llm", "resources": {}} for n in range(9)
    ]
    warnings = ask(api, review(document))["warnings"]
    assert len(warnings) == 5
    assert warnings[-1] == "5 more warnings; graphgate check -f shows them all"


def test_reviews_are_counted_by_their_point(api: httpx.Client) -> None:
    ask(api, review(pod(*FULL)))
    ask(api, review(None))
    lines = api.get("/metrics").text.splitlines()
    assert any(line.startswith("graphgate_verdicts_total{") and 'point="admission"' in line for line in lines)
    assert any(line.startswith('graphgate_admission_unknown_total{answer="allow"} ') for line in lines)


def test_keys_are_not_asked_of_an_api_server_where_the_settings_say_so(tmp_path: Path) -> None:
    given = {"GRAPHGATE_ACCESS": "required", "GRAPHGATE_EMBEDDED_WORKER": "off"}
    with running_server(tmp_path, GRAPHGATE_OPEN="admission", **given) as server, server.client() as api:
        assert not ask(api, review(pod(*FULL)))["allowed"]
        assert api.post("/v1/validations", json={"model": {"id": HYBRID}}).status_code == 401


def test_the_service_starts_and_answers_without_its_hub(tmp_path: Path) -> None:
    given = {
        "GRAPHGATE_OFFLINE": "0",
        "GRAPHGATE_HUB_ENDPOINT": "http://127.0.0.1:9",
        "GRAPHGATE_MODEL_PREFER": "hub",
        "GRAPHGATE_EMBEDDED_WORKER": "off",
        "GRAPHGATE_HUB_FAILURES": "2",
    }
    with running_server(tmp_path, **given) as server, server.client() as api:
        assert api.get("/readyz").status_code == 200
        assert not ask(api, review(pod(*FULL)))["allowed"]
        for number in range(2):
            assert api.post("/v1/validations", json={"model": {"id": f"somebody/m{number}"}}).status_code == 503
        ready = api.get("/readyz").json()
        assert ready["status"] == "ok"
        assert ready["hub"].startswith("left alone for ")
