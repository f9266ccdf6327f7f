"""``graphgate check``: verdicts, exit codes and what a person reads.

The launches are those of https://github.com/sgl-project/sglang/issues/48593 and their near misses; what the engine
resolves is the real engine's answer (``api_tests/conformance``).
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from api_tests.cli.command import FULL_PREFILL, LLAMA, QWEN3_NEXT, environment, graphgate
from api_tests.material import ROOT

HYBRID = "Qwen/Qwen3-Next-80B-A3B-Instruct"
PLAIN = "meta-llama/Llama-3.1-8B-Instruct"
EXPECTED = json.loads((ROOT / "api_tests/conformance/expectations-0.5.23.json").read_text(encoding="utf-8"))
"""The real engine's answers, by launch."""


def test_full_prefill_by_name_on_a_hybrid_is_rejected_with_model_family_flag_and_remedy() -> None:
    done = graphgate("check", HYBRID, "--gpu", "H200", "--", *FULL_PREFILL)
    assert done.code == 1
    assert done.err == ""
    first = done.out.split("\n\n")[0]
    assert first.startswith("rejected: GG101 hybrid-full-prefill: Replace ")
    assert "--cuda-graph-backend-prefill" in first
    said = " ".join(done.out.split())
    assert "error GG101 hybrid-full-prefill (prefill)" in said
    assert f"{HYBRID} (Qwen3NextForCausalLM) is a hybrid linear-attention model, family GDN" in said
    assert "Write instead: --cuda-graph-backend-prefill breakable" in said
    assert "See https://github.com/sgl-project/sglang/issues/48593" in said


def test_the_same_from_the_platform_is_adjusted_and_names_the_launch_to_run() -> None:
    done = graphgate("check", HYBRID, "--defaults", FULL_PREFILL[1], "--", "--tp-size", "8")
    assert done.code == 0
    assert done.out.startswith("adjusted: ")
    assert "warning GG101 hybrid-full-prefill (prefill)" in done.out
    assert "Launch it as: --tp-size 8 --cuda-graph-backend-prefill disabled" in " ".join(done.out.split())


def test_a_model_without_recurrent_state_keeps_its_graph() -> None:
    done = graphgate("check", PLAIN, "--gpu", "H200", "--gpu-count", "1", "--", *FULL_PREFILL)
    assert done.code == 0
    assert done.out.startswith("accepted: Runs as asked")
    assert "GG101" not in done.out


@pytest.mark.parametrize("option", [("--fail-on", "adjusted"), ("--strict",)])
def test_an_adjusted_launch_fails_where_that_is_asked(option: tuple[str, ...]) -> None:
    assert graphgate("check", QWEN3_NEXT, "--defaults", FULL_PREFILL[1], *option).code == 1
    assert graphgate("check", LLAMA, *option).code == 0


def test_what_will_be_captured_is_what_the_engine_says() -> None:
    engine = EXPECTED["T4 llama"]["graph"]
    done = graphgate("check", LLAMA, "--gpu", "T4")
    for phase, unit in (("decode", "requests"), ("prefill", "tokens")):
        sizes = engine[phase]["bs"]
        text = f"  {phase:<8} {engine[phase]['backend']:<10} {len(sizes)} sizes, {sizes[0]} to {sizes[-1]} {unit}\n"
        assert text in done.out


def test_what_the_engine_refuses_is_rejected_in_its_own_words() -> None:
    done = graphgate("check", LLAMA, "--", "--cuda-graph-backend-decode", "fulll")
    assert done.code == 1
    said = " ".join(done.out.split())
    assert said.startswith("rejected: SGLang 0.5.23 refuses this launch (ArgumentError)")
    assert "invalid choice: 'fulll'" in said


def test_the_ledger_is_printed_where_it_is_asked_for() -> None:
    brief, long = graphgate("check", LLAMA), graphgate("check", LLAMA, "--verbose", "--", "--disable-cuda-graph")
    assert "Ledger" not in brief.out
    assert "Ledger (who changed what, and why)" in long.out
    assert "decode.backend: full -> disabled" in long.out


def test_the_environment_of_the_launch_counts() -> None:
    for line in ("H200 llama", "H200 llama SGLANG_ENABLE_POST_CAPTURE_KV_SIZING=1"):
        environment = [word for name in line.split()[2:] for word in ("--env", name)]
        done = graphgate("check", LLAMA, "--format", "json", *environment)
        said = done.document["prediction"]["args"]["mem_fraction_static"]
        assert said == pytest.approx(EXPECTED[line]["args"]["mem_fraction_static"], abs=0.0015), line


def test_lines_fit_a_terminal() -> None:
    for columns in (80, 100):
        done = graphgate(
            "check", HYBRID, "--verbose", "--", "--tp-size", "8", *FULL_PREFILL, settings={"COLUMNS": str(columns)}
        )
        long = [line for line in done.out.splitlines() if len(line) > columns]
        assert not [line for line in long if " " in line.strip()], "a line that could have been broken is too long"


def test_a_model_is_a_path_only_where_it_looks_like_one(tmp_path: Path) -> None:
    (tmp_path / "org").mkdir()
    folder = tmp_path / "org" / "model"
    folder.mkdir()
    (folder / "config.json").write_bytes(Path(LLAMA).read_bytes())
    for model in ("./org/model", str(folder), "org/model/config.json", "../org/model/"):
        cwd = tmp_path / "org" if model.startswith("..") else tmp_path
        done = graphgate("check", model, "--format", "json", cwd=cwd)
        assert (done.code, done.document["model"]["source"]) == (0, "local"), model
    done = graphgate("check", "org/model", cwd=tmp_path)
    assert done.code == 2
    assert "write ./org/model to mean it" in " ".join(done.err.split())


def test_a_config_can_be_given_itself() -> None:
    config = Path(QWEN3_NEXT).read_bytes()
    for words, stdin in ((("--config-json", "-"), config), (("--config-json", config.decode()), b"")):
        done = graphgate("check", *words, "--format", "json", "--", *FULL_PREFILL, stdin=stdin)
        assert done.code == 1
        assert done.document["findings"][0]["rule"] == "GG101"
        assert done.document["model"]["source"] == "inline"


def test_the_engine_arguments_may_name_the_model() -> None:
    done = graphgate("check", "--format", "json", "--", "--model-path", PLAIN, "--tp-size", "2")
    assert done.code == 0
    assert done.document["model"]["id"] == PLAIN


@pytest.mark.parametrize(
    "command",
    [
        ("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING=1", "python3", "-m", "sglang.launch_server", "--model-path", PLAIN),
        ("env", "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING=1", "sglang", "serve", PLAIN),
    ],
)
def test_a_whole_command_may_stand_there(command: tuple[str, ...]) -> None:
    done = graphgate("check", "--format", "json", "--", *command, "--chunked-prefill-size", "4096")
    assert done.code == 0, done.err
    assert done.document["model"]["id"] == PLAIN
    assert done.document["prediction"]["args"]["chunked_prefill_size"] == 4096
    assert done.document["effective"]["arguments"] == ["--chunked-prefill-size", "4096"]
    plain = graphgate("check", PLAIN, "--format", "json", "--", "--chunked-prefill-size", "4096").document
    fractions = [d["prediction"]["args"]["mem_fraction_static"] for d in (plain, done.document)]
    assert fractions[0] != fractions[1], "the command's environment counts"


def _at_a_terminal(**settings: str) -> str:
    """Standard output of a rejected check whose standard output is a terminal."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "service", "check", QWEN3_NEXT, "--", *FULL_PREFILL]
    with subprocess.Popen(words, stdout=theirs, cwd=ROOT, env=environment(TERM="xterm", **settings)) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says so where the other side is closed
                break
            if not part:
                break
            out += part
        assert process.wait() == 1
    os.close(ours)
    return out.decode()


def test_colours_are_for_terminals_that_want_them() -> None:
    assert "\x1b[31;1mrejected\x1b[0m: GG101" in _at_a_terminal()
    assert "\x1b" not in _at_a_terminal(NO_COLOR="1")
    assert "\x1b" not in graphgate("check", QWEN3_NEXT, "--", *FULL_PREFILL).out


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    config = json.loads(Path(LLAMA).read_text(encoding="utf-8"))
    config["architectures"] = ["Llama\x1b[2JForCausalLM"]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    done = graphgate("check", str(tmp_path))
    assert "\x1b" not in done.out
    assert "Llama\\x1b[2JForCausalLM" in done.out


def test_the_reader_may_go_away() -> None:
    words = [sys.executable, "-m", "service", "rules", "--format", "json"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_newer_release_is_answered_as_the_newest_known_and_says_so() -> None:
    done = graphgate("check", LLAMA, "--release", "0.9.0")
    assert done.code == 0
    assert "Note: Release 0.9.0 is newer than those known here; it is answered as 0.5.23." in " ".join(done.out.split())
