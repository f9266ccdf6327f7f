"""Captures by an installed SGLang on a GPU: the real engine, dummy weights, fewer layers, graphgate's plugin in it.

The engine runs as a process below the worker's child, so that the supervisor's deadline, memory limit and cancelling
hold for it. The plugin only warns there (the verdict is known, the capture is to prove it); its guard of the state
tables is on. What the engine did is read from its log (:mod:`engine.capture.adapters.sglang_log`): sizes, seconds and
memory a phase, no single graph, no comparison with eager execution.

Unproven: written from the sources of SGLang 0.5.15 to 0.5.23, not run on a GPU.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.capture.adapters.sglang_log import EngineLog
from engine.capture.adapters.sglang_model import depth_for, with_fewer_layers
from engine.capture.job import CaptureJob, choose_sizes
from engine.capture.unfit import Unfit

if TYPE_CHECKING:
    from engine.capture.child import Journal

SCALING = "the model's own dimensions, dummy weights, its first layers until every kind has come (at least 4)"
PLUGIN = "graphgate-sglang"
END_S = 30.0


def run(job: CaptureJob, journal: Journal) -> None:
    """Start the engine, read its log until all is captured or it has ended, and stop it.

    Raises:
        Unfit: no engine, no plugin, no GPU, or no config that an engine could build from.
    """
    device = _fit()
    config = _config(job)
    journal.describe(
        claim="measured",
        recorder="sglang",
        device=device,
        scaling=SCALING,
        size_rule="the plan's sizes by the rule for GPUs, as the engine's log gives them back",
        allocation="decode-owned",
        versions={**journal.report.versions, **{name: importlib.metadata.version(name) for name in ("sglang", PLUGIN)}},
    )
    log = EngineLog()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
        with _engine(command(job, folder)) as process:
            for line in process.stdout or ():
                sys.stdout.write(line)
                event = log.line(line)
                if event is not None:
                    journal.emit(event)
                if log.ready:
                    break
            status = None if log.ready else process.wait()
    journal.describe(phases=log.phases(job.plans, exit_status=status), error=None if log.ready else log.error)


def command(job: CaptureJob, folder: str, *, port: int | None = None) -> list[str]:
    """The engine's command line for this job and a model whose config is in ``folder``."""
    graph: dict[str, Any] = {"prefill": {"backend": "disabled"}, "decode": {"backend": "disabled"}}
    for plan in job.plans:
        if plan.enabled:
            graph[plan.phase] = {"backend": plan.backend, "bs": list(choose_sizes(plan, job.options, on_cpu=False))}
    return [
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", folder),
        *("--load-format", "dummy", "--skip-tokenizer-init"),
        *("--host", "127.0.0.1", "--port", str(port or _free_port())),
        *("--cuda-graph-config", json.dumps(graph)),
    ]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: the worker's, no hub, and the plugin warning instead of refusing."""
    return {**given, "HF_HUB_OFFLINE": "1", "GRAPHGATE_SGLANG": "warn"}


def _fit() -> str:
    """The GPU's name; raises :class:`Unfit` where something is missing."""
    if importlib.util.find_spec("sglang") is None:
        raise Unfit(
            "EngineMissing",
            "The capture asks for engine sglang, and SGLang is not installed where this worker runs. Install it in the "
            "worker's environment, or ask for engine reference.",
        )
    points = importlib.metadata.entry_points(group="sglang.srt.plugins")
    if not any(point.dist is not None and point.dist.name == PLUGIN for point in points):
        raise Unfit(
            "PluginMissing",
            f"The capture asks for engine sglang, and its plugin {PLUGIN} is not installed beside it: pip install "
            f"{PLUGIN} in the worker's environment.",
        )
    import torch

    if not torch.cuda.is_available():
        raise Unfit(
            "NoGpu",
            "The capture asks for engine sglang, and this worker sees no GPU. Ask for engine reference, or send it to "
            "a worker with a GPU.",
        )
    return torch.cuda.get_device_name(0)


def _config(job: CaptureJob) -> dict[str, Any]:
    """The model's config with fewer layers."""
    config, kinds = job.config, job.layer_kinds
    if not config or not kinds or "hidden_size" not in json.dumps(config):
        raise Unfit(
            "ConfigIncomplete",
            "The capture asks for engine sglang, which builds the model from its whole config.json, and the catalogue "
            "holds a part of it. Give the config itself (model.config), or let the worker fetch it.",
        )
    return with_fewer_layers(config, len(kinds), depth_for(kinds, job.options.layers))


@contextmanager
def _engine(words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603 - the interpreter of this worker, and options from the job
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment(os.environ),
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
