"""A service that is asked at start-up: its answer is final, its absence is no obstacle, and no secret goes anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_tests.server import RunningServer, free_port, running_server
from api_tests.sglang_plugin.engines import Ended, FakeEngine
from api_tests.sglang_plugin.standin import StandIn, stand_in, verdict
from api_tests.sglang_plugin.test_rule import NAMED, NEXT

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
KEY = "gg_key_that_nobody_may_see"


def serve(engine: FakeEngine, url: str, *words: str, model: str = NEXT, **more: Any) -> Ended:
    """A launch by ``sglang serve`` with these words behind the model, with the service at ``url``."""
    argv = ["sglang", "serve", "--model-path", model, *words]
    full = "full" if "full" in words else None
    environment = {name: more.pop(name) for name in list(more) if name.isupper()}
    launch = {"model_path": model, "cuda_graph_backend_prefill": full, **more}
    return engine.launch(launch, argv=argv, GRAPHGATE_URL=url, **environment)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """graphgate itself, with a policy that lets one model pass."""
    folder = tmp_path_factory.mktemp("service")
    policy = folder / "policy.yaml"
    policy.write_text(
        "version: 1\nexceptions:\n"
        f'  - {{rule: GG101, model: "{NEXT}-FP8", mode: "off", until: 2099-01-01, reason: "buffers of their own"}}\n'
    )
    with running_server(folder / "data", GRAPHGATE_POLICY=str(policy)) as server:
        yield server


FULL = ("--tp-size", "8", "--cuda-graph-backend-prefill", "full")


def test_a_rejected_launch_is_refused_in_the_services_words(newest: FakeEngine, service: RunningServer) -> None:
    answer = serve(newest, service.url, *FULL).answers[0]
    assert answer.startswith(f"ValueError: graphgate at {service.url} rejects this launch: GG101: ")
    assert "asks for full prefill graphs by name" in answer
    assert "family GDN (gated delta net)" in answer


def test_an_accepted_launch_goes_on_and_says_so(newest: FakeEngine, service: RunningServer) -> None:
    ended = serve(newest, service.url, *FULL, model=LLAMA)
    assert ended.answers == ["full"]
    assert any(line.startswith(f"INFO: graphgate at {service.url}: accepted. ") for line in ended.log)


def test_a_policy_that_lets_a_model_pass_outweighs_the_plugins_own_rule(
    newest: FakeEngine, service: RunningServer
) -> None:
    assert serve(newest, service.url, *FULL, model=f"{NEXT}-FP8").answers == ["full"]
    assert newest.launch({**NAMED, "model_path": f"{NEXT}-FP8"}).answers[0].startswith("ValueError")


def test_a_rule_that_the_plugin_does_not_have_is_obeyed(newest: FakeEngine, service: RunningServer) -> None:
    words = ("--moe-dense-tp-size", "1", "--no-such-option", "3")
    answer = serve(newest, service.url, *words, model=LLAMA).answers[0]
    assert answer.startswith(f"ValueError: graphgate at {service.url} rejects this launch: ")
    assert "--no-such-option" in answer


def test_warn_lets_a_rejected_launch_through(newest: FakeEngine, service: RunningServer) -> None:
    ended = serve(newest, service.url, *FULL, GRAPHGATE_SGLANG="warn")
    assert ended.answers == ["full"]
    assert len(ended.said("WARNING")) == 1
    assert "rejects this launch" in ended.said("WARNING")[0]


def test_a_model_that_the_service_does_not_know_is_left_to_the_plugins_rule(
    newest: FakeEngine, service: RunningServer
) -> None:
    ended = serve(newest, service.url, *FULL, model="acme/no-such-next-model")
    assert ended.answers[0].startswith("ValueError: graphgate GG101")
    assert "gave no verdict (<HTTPError" in ended.said("WARNING")[0]


def test_an_adjusted_launch_has_its_prefill_graphs_switched_off(newest: FakeEngine) -> None:
    with stand_in(verdict("adjusted", "disabled", said="Too large.")) as there:
        ended = serve(newest, there.url, *FULL, model=LLAMA)
    assert ended.answers == ["disabled"]
    assert f"graphgate at {there.url} disables prefill graphs: GG999: Too large. Do otherwise." in ended.log[-1]


def test_an_adjustment_of_something_else_changes_nothing(newest: FakeEngine) -> None:
    with stand_in(verdict("adjusted", "full")) as there:
        assert serve(newest, there.url, *FULL, model=LLAMA).answers == ["full"]
    with stand_in(verdict("accepted", "disabled")) as there:
        assert serve(newest, there.url, *FULL, model=LLAMA).answers == ["full"]


def test_one_launch_is_asked_about_once(newest: FakeEngine) -> None:
    launch = {"model_path": LLAMA, "cuda_graph_backend_prefill": "full"}
    with stand_in(verdict("accepted")) as there:
        newest.launch(launch, launch, argv=["launch_server.py", f"--model-path={LLAMA}"], GRAPHGATE_URL=f"{there.url}/")
        assert [path for path, _, _ in there.seen] == ["/v1/validations"]


def test_a_launch_without_a_command_line_is_not_asked_about(newest: FakeEngine) -> None:
    with stand_in(verdict("rejected")) as there:
        ended = newest.launch({"model_path": LLAMA}, argv=["notebook"], GRAPHGATE_URL=there.url)
        assert there.seen == []
    assert ended.answers == ["breakable"]
    assert any("this launch has no command line of its own" in line for line in ended.said("INFO"))


def test_what_is_sent(newest: FakeEngine, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    words = ("--api-key", "abc123", "--ssl-keyfile-password=def456", "--admin-a", "ghi789", "--tp-size", "8")
    secrets = {"api_key": "abc123", "admin_api_key": "ghi789", "ssl_keyfile_password": "def456"}
    variables = {"SGLANG_ENABLE_SPEC_V2": "1", "SGLANG_AUTH_TOKEN": "jkl012", "OTHER": "mno345"}
    with stand_in(verdict("accepted")) as there:
        ended = serve(
            newest, there.url, *words, model=str(folder), GRAPHGATE_API_KEY=f"{KEY}\n", **secrets, **variables
        )
        (_, headers, body), *more = there.seen
    assert more == []
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == {"config": {"model_type": "llama"}}
    assert body["engine"] == {"name": "sglang", "version": "0.5.23"}
    assert body["hardware"] == {"gpu": "NVIDIA H200", "count": 8}
    hidden = ["--api-key", "REDACTED", "--ssl-keyfile-password=REDACTED", "--admin-a", "REDACTED"]
    assert body["arguments"] == ["--model-path", str(folder), *hidden, "--tp-size", "8"]
    assert body["environment"] == {"SGLANG_ENABLE_SPEC_V2": "1"}
    told = str(body) + "\n".join(ended.log)
    assert [word for word in (*secrets.values(), "jkl012", "mno345", KEY) if word in told] == []


def _no_verdict(engine: FakeEngine, url: str, **more: str) -> str:
    """The one warning of a launch that goes on by the plugin's own rule, because there is no answer."""
    refused = serve(engine, url, *FULL, **more)
    assert refused.answers[0].startswith("ValueError: graphgate GG101")
    warned = refused.said("WARNING")
    assert len(warned) == 1
    assert "gave no verdict" in warned[0]
    assert "the plugin's own rule holds" in warned[0]
    assert KEY not in "\n".join(refused.log)
    return warned[0]


def test_nobody_listening(newest: FakeEngine) -> None:
    assert "Connection refused" in _no_verdict(newest, f"http://127.0.0.1:{free_port()}")


def test_a_slow_service(newest: FakeEngine) -> None:
    with stand_in(verdict("accepted"), after_s=1) as there:
        assert "timed out" in _no_verdict(newest, there.url, GRAPHGATE_TIMEOUT="0.2")


@pytest.mark.parametrize("body", [b"", b"not json", b"{}", b'{"verdict": "rejected", "findings": 3}', b"[1]"])
def test_an_answer_that_is_none(newest: FakeEngine, body: bytes) -> None:
    with stand_in(body) as there:
        _no_verdict(newest, there.url)


@pytest.mark.parametrize("status", [401, 403, 422, 429, 500, 503])
def test_a_refusal_to_answer(newest: FakeEngine, status: int) -> None:
    with stand_in(verdict("accepted"), status=status) as there:
        assert f"HTTPError {status}" in _no_verdict(newest, there.url, GRAPHGATE_API_KEY=KEY)


def test_a_redirect_takes_the_key_nowhere(newest: FakeEngine) -> None:
    with stand_in(verdict("accepted")) as other, stand_in(b"", status=302, location=f"{other.url}/v1/x") as there:
        _no_verdict(newest, there.url, GRAPHGATE_API_KEY=KEY)
        assert other.seen == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "graphgate.example", "ftp://127.0.0.1/"])
def test_only_http_is_spoken(newest: FakeEngine, url: str) -> None:
    assert "ValueError" in _no_verdict(newest, url)


def test_a_key_that_no_header_can_carry_is_not_quoted(newest: FakeEngine) -> None:
    with stand_in(verdict("accepted")) as there:
        assert "(ValueError)" in _no_verdict(newest, there.url, GRAPHGATE_API_KEY=f"{KEY}\nX: y")
        assert there.seen == []


def test_a_password_in_the_address_is_not_logged(newest: FakeEngine) -> None:
    assert KEY not in _no_verdict(newest, f"http://user:{KEY}@127.0.0.1:{free_port()}")


def test_switched_off_nobody_is_asked(newest: FakeEngine) -> None:
    there: StandIn
    with stand_in(verdict("rejected")) as there:
        assert serve(newest, there.url, *FULL, GRAPHGATE_SGLANG="off").answers == ["full"]
        assert there.seen == []
