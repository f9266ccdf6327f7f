"""Admission reviews over HTTP: the time of an answer while the model hub answers, and while it hangs.

A server of its own with a model hub of its own on this machine. "known" reviews name a model of the packaged catalogue,
"new" ones each a model that nobody has asked for.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from api_tests import hub as hubs  # noqa: E402 - the stand-in hub is the tests'
from api_tests.server import running_server  # noqa: E402

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
}
_CALLERS = 8


def options(reader: argparse._ArgumentGroup) -> None:
    """This section's options."""
    reader.add_argument("--reviews", type=int, default=200, help="reviews of each kind (default %(default)s)")


def run(asked: argparse.Namespace) -> None:
    """Measure and print."""
    with hubs.running_hub() as hub, tempfile.TemporaryDirectory() as folder:
        given = {"GRAPHGATE_OFFLINE": "0", "GRAPHGATE_HUB_ENDPOINT": hub.endpoint, "GRAPHGATE_EMBEDDED_WORKER": "off"}
        with running_server(Path(folder), GRAPHGATE_HUB_FAILURES="1000000", **given) as server, server.client() as api:
            new = [f"somebody/model-{number}" for number in range(asked.reviews)]
            for model in new:
                hub.add(model, CONFIG)
            known = ["Qwen/Qwen3-Next-80B-A3B-Instruct"] * asked.reviews
            print(f"admission reviews, {_CALLERS} callers, {asked.reviews} of each kind; milliseconds")
            _measure(api, "hub answers, known model", known)
            _measure(api, "hub answers, new model", new)
            hub.behaviour = hubs.silent(60)
            _measure(api, "hub hangs, known model", known)
            _measure(
                api, "hub hangs, new model", [f"{model}-hanging" for model in new[: max(_CALLERS, asked.reviews // 4)]]
            )


def _measure(api: httpx.Client, what: str, models: list[str]) -> None:
    with ThreadPoolExecutor(_CALLERS) as room:
        answers = list(room.map(lambda model: _ask(api, model), models))
    times = sorted(ms for ms, _ in answers)
    said = {True: 0, False: 0}
    for _, allowed in answers:
        said[allowed] += 1
    print(
        f"  {what:26} p50 {_at(times, 0.5):6.0f}  p99 {_at(times, 0.99):6.0f}  longest {times[-1]:6.0f}"
        f"   {said[True]} allowed, {said[False]} denied"
    )


def _ask(api: httpx.Client, model: str) -> tuple[float, bool]:
    begun = time.perf_counter()
    answer = api.post("/v1/admission", params={"timeout": "2s"}, json=_review(model))
    return (time.perf_counter() - begun) * 1000, bool(answer.raise_for_status().json()["response"]["allowed"])


def _at(times: list[float], part: float) -> float:
    return times[min(len(times) - 1, math.ceil(part * len(times)) - 1)]


def _review(model: str) -> dict[str, Any]:
    words = ["sglang", "serve", model, "--cuda-graph-backend-prefill", "full"]
    container = {
        "name": "engine",
        "image": "lmsysorg/sglang:v0.5.23",
        "command": words,
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    spec = {"containers": [container], "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    request = {"uid": "u", "operation": "CREATE", "object": pod}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
