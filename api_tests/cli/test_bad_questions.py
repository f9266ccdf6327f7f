"""Every kind of unusable question: exit 2, one sentence about what is wrong, one about what to change, no traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from api_tests.cli.command import LLAMA, graphgate

BAD = [
    # words, slug, part of what is said
    pytest.param(["check"], "usage", "No model is named.", id="no model"),
    pytest.param(["chekc", LLAMA], "usage", "Did you mean check?", id="misspelt command"),
    pytest.param(["check", LLAMA, "--gpuu", "H200"], "usage", "Did you mean --gpu?", id="misspelt option"),
    pytest.param(["check", LLAMA, "--tp-size", "8"], "usage", "go behind --", id="engine option before --"),
    pytest.param(["check", LLAMA, "another"], "usage", "'another' is one word too many", id="two models"),
    pytest.param(["check", LLAMA, "--gpu"], "usage", "--gpu: expected one argument", id="option without value"),
    pytest.param(["check", LLAMA, "--gpu", "H20O"], "unknown-gpu", "Did you mean", id="unknown GPU"),
    pytest.param(["check", LLAMA, "--gpu-count", "0"], "usage", "whole number from 1", id="no GPU"),
    pytest.param(
        ["check", LLAMA, "--gpu-count", "eight"], "usage", "'eight' is not a whole number", id="GPUs in words"
    ),
    pytest.param(["check", LLAMA, "--release", "latest"], "unknown-release", "Write it like 0.5.23", id="release name"),
    pytest.param(["check", LLAMA, "--release", "0.4.9"], "unknown-release", "is not covered", id="old release"),
    pytest.param(["check", LLAMA, "--format", "xml"], "usage", "invalid choice: 'xml'", id="unknown format"),
    pytest.param(["check", LLAMA, "--defaults", "{'a'}"], "invalid-launch", "single quotes", id="defaults not JSON"),
    pytest.param(
        ["check", LLAMA, "--defaults", "[1]"], "invalid-launch", "must be a JSON object", id="defaults a list"
    ),
    pytest.param(
        ["check", LLAMA, "--defaults", '{"prefil": {"backend": "full"}}'],
        "invalid-launch",
        "prefill",
        id="defaults with a misspelt phase",
    ),
    pytest.param(["check", LLAMA, "--env", "NOVALUE"], "usage", "Write --env NAME=VALUE", id="environment without ="),
    pytest.param(["check", "no-such-model"], "hub-unavailable", "packaged catalogue", id="unknown id, offline"),
    pytest.param(["check", "a/b/c/d"], "invalid-model-id", "MODEL:", id="no id"),
    pytest.param(["check", "org/na me"], "invalid-model-id", "MODEL:", id="space in the id"),
    pytest.param(["check", "org/\x1b[31mname"], "invalid-model-id", "MODEL:", id="control character in the id"),
    pytest.param(["check", ""], "invalid-model-id", "MODEL:", id="empty id"),
    pytest.param(["check", "./no/such/folder"], "model-not-found", "There is no config.json", id="no such folder"),
    pytest.param(["check", "/dev/null.json"], "model-not-found", "There is no config.json", id="no such file"),
    pytest.param(["check", "--config-json", "{"], "config-unreadable", "The config is not JSON", id="broken config"),
    pytest.param(["check", "--config-json", "[]"], "config-unreadable", "JSON list", id="config a list"),
    pytest.param(["check", "--config-json", "{}"], "config-unreadable", "no architecture", id="config of nothing"),
    pytest.param(["check", LLAMA, "--config-json", "{}"], "usage", "both given", id="model and config"),
    pytest.param(
        ["check", LLAMA, "--revision", "main"], "usage", "--revision belongs to a hub id", id="revision of a path"
    ),
    pytest.param(
        ["check", LLAMA, "--", "--model-path", "org/other"], "usage", "Two models are named", id="model named twice"
    ),
    pytest.param(["check", LLAMA, "--", "--config", "x.yaml"], "invalid-launch", "--config", id="engine config file"),
    pytest.param(["check", "-f", "no-such.yaml"], "usage", "No such file", id="no such manifest"),
    pytest.param(["check", "-f", "README.md", LLAMA], "usage", "both given", id="manifest and model"),
    pytest.param(["check", "--cases", "x.jsonl"], "usage", "needs --models-dir", id="cases without folder"),
    pytest.param(
        ["check", "--cases", "x.jsonl", "--models-dir", "nowhere"], "usage", "is no folder", id="no such folder"
    ),
    pytest.param(["check", "--cases", "x.jsonl", "--models-dir", "."], "usage", "No such file", id="no such cases"),
    pytest.param(
        ["check", "--cases", "x.jsonl", "--models-dir", ".", "--gpu", "T4"], "usage", "its own gpu", id="GPU for cases"
    ),
    pytest.param(["check", LLAMA, "--models-dir", "."], "usage", "belongs to --cases", id="folder without cases"),
    pytest.param(["capture", LLAMA, "--phases", "prefil"], "invalid-launch", "--phases", id="misspelt phase"),
    pytest.param(["capture", LLAMA, "--device", "tpu"], "invalid-launch", "--device", id="unknown device"),
    pytest.param(["capture", LLAMA, "--sizes", "-1"], "invalid-launch", "--sizes", id="negative sizes"),
    pytest.param(["capture", LLAMA, "--sizes", "four"], "usage", "is not a number", id="sizes in words"),
    pytest.param(["capture", LLAMA, "--timeout", "nan"], "invalid-launch", "seconds above 0", id="no timeout"),
    pytest.param(["compare", LLAMA, "--from", "0.5.23"], "usage", "--to", id="comparison with nothing"),
    pytest.param(["compare", LLAMA, "--from", "0.5.23", "--to", "x"], "unknown-release", "'x'", id="comparison with x"),
    pytest.param(["rules", "GG1001"], "usage", "Did you mean GG101?", id="unknown rule"),
    pytest.param(["rules", "--", "x"], "usage", "takes no engine arguments", id="engine arguments for rules"),
    pytest.param(["models"], "usage", "No model is named", id="facts of nothing"),
    pytest.param(["serve", "--port", "70000"], "usage", "not a port", id="no such port"),
    pytest.param(["serve", "--host", "256.0.0.1"], "usage", "cannot be listened on", id="no such address"),
    pytest.param(["gpus", "--gpu", "H200"], "usage", "See graphgate gpus --help", id="option of another command"),
]


@pytest.mark.parametrize(("words", "slug", "said"), BAD)
def test_it_is_told_what_to_change(words: list[str], slug: str, said: str) -> None:
    done = graphgate(*words)
    text = " ".join(done.err.split())
    assert done.code == 2, text
    assert done.out == ""
    assert text.startswith("graphgate: error: ")
    assert f"[{slug}]" in text
    assert said in text
    assert "Traceback" not in text
    assert "\x1b" not in text


def test_a_program_that_asked_for_json_gets_the_error_as_json() -> None:
    done = graphgate("check", LLAMA, "--gpu", "nothing", "--format", "json")
    assert done.code == 2
    assert done.document["version"] == 1
    error = done.document["error"]
    assert error["code"] == "unknown-gpu"
    assert error["field"] == "hardware.gpu"
    assert error["remedy"].startswith("Known: ")


def test_json_is_kept_where_the_command_line_itself_is_wrong() -> None:
    done = graphgate("check", LLAMA, "--format", "json", "--gpuu", "H200")
    assert (done.code, done.document["error"]["code"]) == (2, "usage")


def test_a_manifest_that_is_none(tmp_path: Path) -> None:
    for content, said in ((b"a: [", "is not YAML"), (b"\xff\xfe", "is not UTF-8"), (b"a: 1", "No SGLang launch")):
        (tmp_path / "m.yaml").write_bytes(content)
        done = graphgate("check", "-f", str(tmp_path / "m.yaml"))
        assert done.code == 2
        assert said in " ".join(done.err.split())


def test_a_config_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    done = graphgate("check", str(tmp_path), timeout_s=30)
    assert done.code == 2
    assert "no regular file" in done.err


def test_a_config_as_deep_as_a_well(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    for words in ((str(tmp_path / "deep.json"),), (LLAMA, "--defaults", '{"a":' * 20_000)):
        done = graphgate("check", *words)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_a_hub_that_is_not_there() -> None:
    """Port 9 of this machine: nobody listens."""
    settings = {"GRAPHGATE_OFFLINE": "0", "GRAPHGATE_HUB_ENDPOINT": "http://127.0.0.1:9", "GRAPHGATE_HUB_TOKEN": "hf_x"}
    done = graphgate("check", "org/name", settings=settings)
    assert done.code == 2
    assert "[hub-unavailable]" in done.err
    assert "hf_x" not in done.err


def test_a_setting_that_cannot_be_used() -> None:
    done = graphgate("check", "org/name", settings={"GRAPHGATE_HUB_ENDPOINT": "ftp://hub"})
    assert done.code == 2
    assert "GRAPHGATE_HUB_ENDPOINT" in done.err
    done = graphgate("worker", settings={"GRAPHGATE_CAPTURE_QUEUE": "many"})
    assert done.code == 2
    assert "GRAPHGATE_CAPTURE_QUEUE" in done.err


def test_words_that_are_not_text() -> None:
    done = graphgate("check", os.fsdecode(b"org/\xff"))
    assert done.code == 2
    assert "[invalid-model-id]" in done.err


def test_errors_of_json_are_whole() -> None:
    """What a program reads is one document even where the words are hostile."""
    done = graphgate("models", "a\nb/c", "--format", "json")
    assert json.loads(done.out)["error"]["code"] == "invalid-model-id"
