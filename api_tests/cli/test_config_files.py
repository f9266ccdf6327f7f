"""``graphgate check MODEL -- --config FILE``: the operator's own file, read and merged as the engine does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api_tests.cli.command import LLAMA, graphgate
from api_tests.material import ROOT

MERGED = json.loads((ROOT / "api_tests/sglang/config_files/merged-0.5.23.json").read_text(encoding="utf-8"))


def _resolved(*words: str) -> dict[str, object]:
    done = graphgate("check", LLAMA, "--gpu", "H200", "--format", "json", "--", *words)
    assert done.err == ""
    prediction: dict[str, object] = done.document["prediction"]
    return prediction


def test_the_files_options_stand_before_those_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "launch.yaml"
    file.write_text("tp-size: 8\nattention-backend: triton\nmem-fraction-static: 0.8\n", encoding="utf-8")
    from_file = _resolved("--page-size", "64", "--config", str(file), "--tp", "4")
    assert from_file == _resolved(*MERGED["scalars"])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("launch.yaml", "disable-cuda-graph: true\n", MERGED["switch-on"]["message"]),
        ("launch.yaml", "- tp-size\n", MERGED["not-a-mapping"]["message"]),
        ("launch.txt", "tp-size: 8\n", MERGED["wrong-suffix"]["message"]),
        ("launch.yaml", "tp-size: [8\n", "is not YAML"),
        ("launch.yaml", None, "No such file or directory"),
    ],
)
def test_a_file_that_the_engine_refuses_is_no_question(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_text(content, encoding="utf-8")
    done = graphgate("check", LLAMA, "--", "--config", str(file))
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_written_with_an_equals_sign_the_engine_opens_no_file_and_says_nothing() -> None:
    prediction = _resolved("--config=nowhere.yaml")
    assert prediction["outcome"] == "resolved"
    assert prediction["unexamined"] == ["--config"]
