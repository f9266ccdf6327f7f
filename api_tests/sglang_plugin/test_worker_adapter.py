"""Captures by an installed SGLang: its log as it writes it, the model with fewer layers, and the refusals for real."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_tests.material import ROOT
from api_tests.sglang_plugin.engines import FakeEngine
from engine.capture.adapters.sglang import command, environment
from engine.capture.adapters.sglang_log import EngineLog
from engine.capture.adapters.sglang_model import depth_for, with_fewer_layers
from engine.capture.job import CaptureJob, CaptureOptions, PhasePlan, job_for
from engine.capture.report import PhaseReport
from engine.capture.supervisor import Supervisor
from engine.errors import InvalidLaunch
from engine.launch import Phase
from engine.models.facts import ModelFacts
from engine.models.reading import facts_of
from engine.verdict import PhaseGraph

NEXT: dict[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "vocab_size": 151936,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}

PLANS = (
    PhasePlan(phase="prefill", backend="full", sizes=(16, 64)),
    PhasePlan(phase="decode", backend="full", sizes=(1, 2, 4)),
)


def facts(config: dict[str, Any]) -> ModelFacts:
    return facts_of(config, source="inline")


def job(config: dict[str, Any] | None = None, **options: Any) -> CaptureJob:
    graph: dict[Phase, PhaseGraph] = {
        "prefill": PhaseGraph(backend="full", bs=(16, 64)),
        "decode": PhaseGraph(backend="full", bs=(1, 2, 4)),
    }
    made = CaptureOptions(engine="sglang", **options)
    return job_for(id="cap_1", facts=facts(config or NEXT), graph=graph, options=made)


# As srt/model_executor/model_runner.py of 0.5.15 and cuda_graph_setup.py of 0.5.23 write it.
PREFILL = (
    "[2026-12-01 10:00:01] Capture target prefill CUDA graph begin. backend=full, num_tokens=[16, 64], "
    "avail mem=70.12 GB\n"
    "[2026-12-01 10:00:04] Capture target prefill CUDA graph end. elapsed=2.75 s, mem usage=0.50 GB, "
    "avail mem=69.62 GB.\n"
)
OLD_DECODE = (
    "[2026-12-01 10:00:05 TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, "
    "bs=[1, 2, 4], avail mem=69.62 GB\n"
    "[2026-12-01 10:00:06 TP0] Capture target decode CUDA graph end. elapsed=1.25 s, mem usage=0.25 GB, "
    "avail mem=69.37 GB.\n"
)
NEW_DECODE = (
    "[2026-12-01 10:00:05] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, "
    "avail mem=69.62 GB\n"
    "[2026-12-01 10:00:06] Capture target decode CUDA graph end. bs=[1, 2, 4], elapsed=1.25 s, "
    "mem usage=0.25 GB, avail mem=69.37 GB.\n"
)
READY = "[2026-12-01 10:00:09] The server is fired up and ready to roll!\n"


def read(text: str, exit_status: int | None = None) -> tuple[EngineLog, dict[Phase, PhaseReport]]:
    log = EngineLog()
    for line in text.splitlines():
        log.line(line)
    return log, log.phases(PLANS, exit_status=exit_status)


@pytest.mark.parametrize("decode", [OLD_DECODE, NEW_DECODE], ids=["0.5.15", "0.5.23"])
def test_both_phases_captured(decode: str) -> None:
    log, phases = read(PREFILL + decode + READY)
    assert log.ready
    assert log.events == ["prefill.capture.begin", "prefill.capture.end", "decode.capture.begin", "decode.capture.end"]
    assert {phase: report.outcome for phase, report in phases.items()} == {"prefill": "ok", "decode": "ok"}
    assert phases["prefill"].sizes == (16, 64)
    assert phases["decode"].sizes == (1, 2, 4)
    assert "captured in 2.75 s with 0.5 GB of GPU memory" in phases["prefill"].note
    assert "no replay was compared" in phases["decode"].note
    assert phases["prefill"].graphs == ()


def test_a_table_that_nobody_allocated_is_the_guards_refusal() -> None:
    begun = PREFILL.splitlines()[0]
    error = (
        "RuntimeError: CUDA graph metadata of the GDNAttnBackend linear-attention backend: state_indices_list was asked"
    )
    log, phases = read(f"{begun}\nTraceback (most recent call last):\n{error} for batch size 4\n", exit_status=-9)
    assert not log.ready
    assert phases["prefill"].outcome == "guard_refused"
    assert phases["prefill"].error is not None
    assert phases["prefill"].error.type == "RuntimeError"
    assert phases["decode"].outcome == "skipped"
    assert phases["decode"].note == "The engine ended before this phase."


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("IndexError: list index out of range", "capture_failed"),
        ("[TP0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "oom"),
        ("Exception: Capture cuda graph failed: CUDA out of memory", "oom"),
        ("Exception: Capture cuda graph failed: CUDA graph metadata of the X backend", "guard_refused"),
    ],
)
def test_a_capture_that_fails(line: str, outcome: str) -> None:
    _, phases = read(f"{PREFILL}{NEW_DECODE.splitlines()[0]}\n{line}\n", exit_status=1)
    assert phases["prefill"].outcome == "ok"
    assert phases["decode"].outcome == outcome


def test_a_graph_that_the_engine_gives_up() -> None:
    given_up = "[2026-12-01 10:00:01] Disable prefill CUDA graph because some layers do not apply Standard GQA\n"
    _, phases = read(given_up + NEW_DECODE + READY)
    assert phases["prefill"].outcome == "skipped"
    assert "some layers do not apply Standard GQA" in phases["prefill"].note
    assert phases["decode"].outcome == "ok"


def test_an_engine_that_never_came_so_far() -> None:
    _, silent = read("", exit_status=3)
    assert {report.outcome for report in silent.values()} == {"infrastructure"}
    assert silent["prefill"].error is not None
    assert silent["prefill"].error.message == "The engine ended with status 3."
    _, loud = read("ValueError: The checkpoint you are trying to load has model type `x`", exit_status=1)
    assert {report.outcome for report in loud.values()} == {"infrastructure"}
    assert loud["decode"].error is not None
    assert loud["decode"].error.type == "ValueError"


ENGINES = Path(os.environ.get("ORACLE_HOME") or Path.home() / ".cache" / "engine-oracle")
HOMES = (
    "srt/model_executor/model_runner.py",
    "srt/model_executor/model_runner_components/cuda_graph_setup.py",
    "srt/entrypoints/http_server.py",
)


def written_by_the_engine(release: str) -> list[str]:
    """The engine's own log lines of captures, from its source, with values filled in, in the order of the source."""
    values = {"capture_name": "target prefill", "num_tokens": "[16, 64]", "bs": "[1, 2, 4]", "backend": "full"}

    def filled(text: ast.JoinedStr) -> Iterator[str]:
        for part in text.values:
            if isinstance(part, ast.Constant):
                yield str(part.value)
            elif isinstance(part, ast.FormattedValue):
                name = ast.unparse(part.value)
                if "graph_backend" in name:
                    yield "CUDA graph"
                elif "bs" in name.split(".")[-1] and "num" not in name:
                    yield values["bs"]
                elif "num_tokens" in name and "per" not in name:
                    yield values["num_tokens"]
                else:
                    yield values.get(name, "1.50" if part.format_spec else "full")

    lines = []
    for home in HOMES:
        path = ENGINES / f"sglang-{release}" / "sglang" / home
        for node in ast.walk(ast.parse(path.read_text("utf-8"))) if path.exists() else ():
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if called == "info" and isinstance(node, ast.Call) and node.args:
                said = node.args[0]
                text = "".join(filled(said)) if isinstance(said, ast.JoinedStr) else str(getattr(said, "value", ""))
                if re.search(r"graph (begin|end)\.|fired up", text):
                    decode = "num_tokens=[" not in text and ("bs=" in text or "per_" in text or "graph end" in text)
                    lines.append(text.replace("target prefill", "target decode") if decode and "bs=" in text else text)
    return lines


@pytest.mark.parametrize("release", [f"0.5.{patch}" for patch in range(15, 24)])
def test_the_lines_that_the_engines_source_writes(release: str) -> None:
    if not (ENGINES / f"sglang-{release}" / "sglang").is_dir():
        pytest.skip(f"needs an installed engine (SGLang {release})")
    lines = written_by_the_engine(release)
    assert any("fired up" in line for line in lines)
    log = EngineLog()
    events = [event for event in map(log.line, lines) if event]
    assert log.ready
    assert len(events) == 4, lines
    phases = log.phases(PLANS)
    assert phases["prefill"].sizes == (16, 64)
    assert any(report.outcome == "ok" and "captured in 1.5 s with 1.5 GB" in report.note for report in phases.values())


def test_the_first_layers_until_every_kind_has_come() -> None:
    assert depth_for(facts(NEXT).layer_kinds, None) == 4
    assert depth_for(facts(NEXT).layer_kinds, 9) == 9
    assert depth_for(["a"], None) == 1
    assert depth_for(["a"] * 20 + ["b"] + ["a"] * 9, 5) == 21


@pytest.mark.parametrize(
    ("config", "whole", "depth", "cut"),
    [
        ({"num_hidden_layers": 48, "vocab_size": 48}, 48, 4, {"num_hidden_layers": 4, "vocab_size": 48}),
        ({"hybrid_override_pattern": "M-M*M-M*", "name": "12345678"}, 8, 4, {"hybrid_override_pattern": "M-M*"}),
        ({"layer_types": list("abcdef"), "stop": [1, 2]}, 6, 2, {"layer_types": ["a", "b"], "stop": [1, 2]}),
        ({"text_config": {"n_layer": 6, "x": 6}}, 6, 3, {"text_config": {"n_layer": 3, "x": 6}}),
        ({"full_attn_idxs": [2, 5, 7]}, 8, 6, {"full_attn_idxs": [2, 5]}),
        (
            {"kda_layers": [1, 2, 3, 5], "full_attn_layers": [4, 8]},
            8,
            4,
            {"kda_layers": [1, 2, 3], "full_attn_layers": [4]},
        ),
        ({"attn_layer_indices": [0, 4, 7]}, 8, 4, {"attn_layer_indices": [0]}),
    ],
)
def test_what_is_cut(config: dict[str, Any], whole: int, depth: int, cut: dict[str, Any]) -> None:
    assert with_fewer_layers(config, whole, depth) == {**config, **cut}


def test_the_engines_command_line() -> None:
    words = command(job(sizes=2), "/models/x", port=4321)
    graph = json.loads(words[words.index("--cuda-graph-config") + 1])
    assert graph == {"prefill": {"backend": "full", "bs": [16, 64]}, "decode": {"backend": "full", "bs": [1, 4]}}
    assert words[1:5] == ["-m", "sglang.launch_server", "--model-path", "/models/x"]
    assert words[words.index("--load-format") + 1] == "dummy"
    assert words[words.index("--port") + 1] == "4321"
    only = command(job(phases=("decode",)), "/models/x", port=1)
    assert json.loads(only[only.index("--cuda-graph-config") + 1])["prefill"] == {"backend": "disabled"}


def test_the_plugin_warns_there_and_no_hub_is_asked() -> None:
    assert environment({"PATH": "/bin", "GRAPHGATE_SGLANG": "off"}) == {
        "PATH": "/bin",
        "HF_HUB_OFFLINE": "1",
        "GRAPHGATE_SGLANG": "warn",
    }


def test_the_option_and_the_job_travel() -> None:
    made = job(layers=6)
    assert CaptureJob.from_json(made.to_json()) == made
    assert made.config == NEXT
    assert len(made.layer_kinds) == 48
    plain = job_for(id="cap_2", facts=facts(NEXT), graph={}, options=CaptureOptions())
    assert (plain.config, plain.layer_kinds, plain.options.engine) == (None, (), "reference")
    with pytest.raises(InvalidLaunch, match="engine is 'vllm'"):
        CaptureOptions.from_dict({"engine": "vllm"})


def test_a_worker_without_the_engine_says_so(tmp_path: Path) -> None:
    report = Supervisor(tmp_path).run(job())
    assert report.complete
    assert {phase.outcome for phase in report.phases.values()} == {"infrastructure"}
    assert report.error is not None
    assert report.error.type == "EngineMissing"
    assert "SGLang is not installed where this worker runs" in report.error.message
    assert report.claim is None


RUN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from dataclasses import replace
from engine.capture.adapters.sglang import run
from engine.capture.job import CaptureJob
from engine.capture.report import CaptureReport
from engine.capture.unfit import Unfit

class Journal:
    def __init__(self):
        self.report = CaptureReport(id="cap_1", phases={{}})
        self.events = []
    def emit(self, event, **data):
        self.events.append(event)
    def describe(self, **fields):
        self.report = replace(self.report, **fields)

journal = Journal()
try:
    with __import__("contextlib").redirect_stdout(sys.stderr):
        run(CaptureJob.from_json(sys.argv[1] if len(sys.argv) > 1 else JOB), journal)
    answers.append(journal.report.to_dict())
    answers.append(journal.events)
except Unfit as unfit:
    answers.append(f"{{unfit.type}}: {{unfit}}")
"""
LAUNCHED = f"""
import json, os, sys, time
from importlib.metadata import entry_points
argv = sys.argv
config = json.load(open(os.path.join(argv[argv.index("--model-path") + 1], "config.json")))
assert config["num_hidden_layers"] == 4, config
assert os.environ["GRAPHGATE_SGLANG"] == "warn"
print({PREFILL + NEW_DECODE!r}, end="", flush=True)
if os.environ.get("FAILS"):
    sys.exit("RuntimeError: something")
print({READY!r}, flush=True)
time.sleep(60)
"""


def run_in(engine: FakeEngine, asked: CaptureJob, **variables: str) -> list[Any]:
    (engine.root / "sglang-0.5.23.dist-info").mkdir(exist_ok=True)
    engine.write("sglang-0.5.23.dist-info/METADATA", "Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.23\n")
    engine.write("sglang/launch_server.py", LAUNCHED)
    return engine.script(f"JOB = {asked.to_json()!r}\n{RUN}", **variables).answers


def test_a_worker_without_a_gpu_says_so(newest: FakeEngine) -> None:
    (said,) = run_in(newest, job(), NO_GPU="1")
    assert said.startswith("NoGpu: The capture asks for engine sglang, and this worker sees no GPU.")


def test_a_worker_without_the_plugin_says_so(newest: FakeEngine) -> None:
    (newest.root / "graphgate_sglang-0.1.0.dist-info" / "entry_points.txt").write_text("")
    (said,) = run_in(newest, job())
    assert said.startswith("PluginMissing: ")
    assert "pip install graphgate-sglang" in said


def test_a_config_that_is_a_part_says_so(newest: FakeEngine) -> None:
    part = {key: value for key, value in NEXT.items() if key != "hidden_size"}
    (said,) = run_in(newest, job(part))
    assert said.startswith("ConfigIncomplete: ")


def test_the_engine_is_started_read_and_stopped(newest: FakeEngine) -> None:
    report, events = run_in(newest, job())
    assert (report["recorder"], report["claim"], report["device"]) == ("sglang", "measured", "NVIDIA H200")
    assert report["versions"] == {"sglang": "0.5.23", "graphgate-sglang": "0.1.0"}
    assert {phase["outcome"] for phase in report["phases"].values()} == {"ok"}
    assert events == ["prefill.capture.begin", "prefill.capture.end", "decode.capture.begin", "decode.capture.end"]


def test_an_engine_that_ends_by_itself_has_its_error_told(newest: FakeEngine) -> None:
    report, _ = run_in(newest, job(), FAILS="1")
    assert report["error"] == {"type": "RuntimeError", "message": "something", "traceback": ""}
