"""``graphgate check --cases``: one line out for each line in, in order, whatever the lines hold."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from api_tests.cli.command import CONFIGS, FULL_PREFILL, Done, environment, graphgate
from api_tests.conformance.launches import cases
from api_tests.material import ROOT

GRAPH_KEYS = ("backend", "max_bs", "bs", "max_context_size", "full_prefill_max_req", "max_seq_len")


def _asked(lines: list[bytes], tmp_path: Path, models: Path = CONFIGS) -> tuple[Done, list[dict[str, Any]]]:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(b"\n".join(lines))
    done = graphgate("check", "--cases", str(file), "--models-dir", str(models))
    assert done.err == ""
    return done, [json.loads(line) for line in done.out.splitlines()]


def _line(**case: Any) -> bytes:
    return json.dumps({"engine": "sglang", "version": "0.5.23", "gpu": "H200", "argv": [], **case}).encode()


GOOD = _line(id="good", model="llama.json")


def test_every_launch_is_answered_as_the_engine_answers_it(tmp_path: Path) -> None:
    expected = json.loads((ROOT / "api_tests/conformance/expectations-0.5.23.json").read_text(encoding="utf-8"))
    asked = [case for case in cases() if case.line in expected]
    lines = [
        _line(id=c.line, gpu=c.gpu, model=f"{c.model}.json", argv=list(c.arguments), env=dict(c.environment), more=1)
        for c in asked
    ]
    done, answers = _asked(lines, tmp_path)
    assert done.code == 0
    assert len(answers) > 100
    assert [answer["id"] for answer in answers] == [case.line for case in asked]
    for answer in answers:
        engine, ours = expected[answer["id"]], answer["prediction"]
        assert set(answer) == {"id", "verdict", "prediction", "findings"}
        assert ours["outcome"] == engine["outcome"], answer["id"]
        if engine["outcome"] == "refused":
            assert answer["verdict"] == "rejected"
            assert {key: ours["error"][key] for key in ("stage", "type")} == {
                key: engine["error"][key] for key in ("stage", "type")
            }, answer["id"]
            continue
        for phase in ("decode", "prefill"):
            assert {key: ours["graph"][phase][key] for key in GRAPH_KEYS} == {
                key: engine["graph"][phase][key] for key in GRAPH_KEYS
            }, answer["id"]
        assert [list(pair) for pair in ours["locked"]] == sorted(engine["locked"]), answer["id"]


def test_a_finding_has_the_shape_that_is_promised(tmp_path: Path) -> None:
    _, (answer,) = _asked([_line(id=7, model="qwen3-next.json", argv=list(FULL_PREFILL))], tmp_path)
    assert answer["id"] == 7
    assert answer["verdict"] == "rejected"
    (finding,) = answer["findings"]
    assert finding["rule"] == "GG101"
    assert finding["slug"] == "hybrid-full-prefill"
    assert finding["covers"] == ["HYBRID_LINEAR_FULL_PREFILL"]
    assert (finding["severity"], finding["phase"]) == ("error", "prefill")
    assert finding["message"]
    assert finding["remedy"]
    assert finding["evidence"]


ODD: list[tuple[bytes, Any, str, str]] = [
    # line, id in the answer, code, part of what is said
    (b"", None, "invalid-launch", "The line is empty."),
    (b'  \t {"id": 1, ', None, "invalid-launch", "is not JSON"),
    (b"\xff\xfe", None, "invalid-launch", "not UTF-8"),
    (b"[1, 2]", None, "invalid-launch", "not a JSON object"),
    (b"[" * 100_000, None, "invalid-launch", "nested too deep"),
    (b'{"id": "x", "argv": [' + b"1" * 5000 + b"]}", None, "invalid-launch", "too long"),
    (b'{"id": "y", "pad": "' + b"x" * 5_000_000 + b'"}', None, "invalid-launch", "longer than"),
    (_line(id="a"), "a", "invalid-launch", "model must be text"),
    (_line(id="b", model="nothing.json"), "b", "model-not-found", "no config.json"),
    (_line(id="c", model="../launches.txt"), "c", "path-not-allowed", "outside"),
    (_line(id="d", model="/etc/passwd"), "d", "path-not-allowed", "outside"),
    (_line(id="e", model="a\x00b"), "e", "path-not-allowed", "control characters"),
    (_line(id="f", model="llama.json", gpu="H2O"), "f", "unknown-gpu", "H2O"),
    (_line(id="g", model="llama.json", gpu=200), "g", "invalid-launch", "gpu must be text"),
    (_line(id="h", model="llama.json", version="new"), "h", "unknown-release", "new"),
    (_line(id="i", model="llama.json", engine="vllm"), "i", "unknown-engine", "vllm"),
    (_line(id="j", model="llama.json", argv="--tp 8"), "j", "invalid-launch", "list of words"),
    (_line(id="k", model="llama.json", argv=["--tp", 8]), "k", "invalid-launch", "not text"),
    (_line(id="l", model="llama.json", env=["A=1"]), "l", "invalid-launch", "env must be"),
    (_line(id="m", model="llama.json", gpu_count=-1), "m", "invalid-launch", "gpu_count"),
    (_line(id="n", model="llama.json", defaults=[1]), "n", "invalid-launch", "defaults"),
    (_line(id="o", model="broken.json"), "o", "config-unreadable", "not JSON"),
    (_line(id="p", model="\ud800.json"), "p", "path-not-allowed", "cannot be a path"),
    (_line(id={"q": [1]}, model=""), {"q": [1]}, "invalid-launch", "model must be text"),
    (_line(id=None, model=None), None, "invalid-launch", "model must be text"),
]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with one sound model and one that is none, and a link out of it."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "llama.json").write_bytes((CONFIGS / "llama.json").read_bytes())
    (folder / "broken.json").write_text("{", encoding="utf-8")
    (folder / "out.json").symlink_to(CONFIGS / "qwen3-next.json")
    return folder


def test_odd_lines_are_answered_in_their_place_and_the_run_goes_on(tmp_path: Path, models: Path) -> None:
    lines = [line for odd in ODD for line in (odd[0], GOOD)]
    done, answers = _asked(lines, tmp_path, models)
    assert done.code == 2
    assert "Traceback" not in done.out
    assert len(answers) == 2 * len(ODD)
    assert [answer["id"] for answer in answers[1::2]] == ["good"] * len(ODD)
    assert {answer["verdict"] for answer in answers[1::2]} == {"accepted"}
    for (line, case_id, code, said), answer in zip(ODD, answers[::2], strict=True):
        assert set(answer) == {"id", "error", "code"}, line[:80]
        assert (answer["id"], answer["code"]) == (case_id, code), line[:80]
        assert said in answer["error"], line[:80]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, models: Path) -> None:
    done, (answer,) = _asked([_line(id=1, model="out.json")], tmp_path, models)
    assert (done.code, answer["code"]) == (2, "path-not-allowed")


def test_the_last_line_may_or_may_not_end(tmp_path: Path) -> None:
    for end in (b"", b"\n", b"\r\n"):
        done, answers = _asked([GOOD, GOOD + end], tmp_path)
        assert (done.code, len(answers)) == (0, 2)


def test_an_empty_file_has_no_answers(tmp_path: Path) -> None:
    done, answers = _asked([], tmp_path)
    assert (done.code, answers) == (0, [])


def test_a_model_may_be_a_folder(tmp_path: Path, models: Path) -> None:
    (models / "org").mkdir()
    (models / "llama.json").rename(models / "org" / "config.json")
    done, (answer,) = _asked([_line(id=1, model="org")], tmp_path, models)
    assert (done.code, answer["verdict"]) == (0, "accepted")


def test_defaults_and_environment_ride_along(tmp_path: Path) -> None:
    _, (answer,) = _asked(
        [_line(id=1, model="qwen3-next.json", defaults={"prefill": {"backend": "full"}}, env={"A": "1"})], tmp_path
    )
    assert answer["verdict"] == "adjusted"
    assert answer["findings"][0]["severity"] == "warning"


def test_standard_input_is_answered_line_by_line() -> None:
    """Whoever writes one line and waits gets its answer before the next."""
    words = [sys.executable, "-m", "service", "check", "--cases", "-", "--models-dir", str(CONFIGS)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment(), text=True
    ) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(_line(id=number, model="llama.json").decode() + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait() == 0
        guard.cancel()


def test_memory_does_not_grow_with_the_number_of_lines() -> None:
    """Peak memory (KiB, of the process) over 40 times as many lines stays within 8 MiB."""
    script = (
        "import sys, resource\nfrom service.cli import main\n"
        "code = main(['check', '--cases', '-', '--models-dir', sys.argv[1]])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\nsys.exit(code)"
    )
    peaks = []
    for times in (50, 2000):
        done = subprocess.run(
            [sys.executable, "-c", script, str(CONFIGS)],
            input=(GOOD + b"\n") * times,
            capture_output=True,
            cwd=ROOT,
            env=environment(),
            check=True,
        )
        assert len(done.stdout.splitlines()) == times
        peaks.append(int(done.stderr))
    assert peaks[1] - peaks[0] < 8 * 1024
