"""A launch that resolves and that the launcher refuses is rejected; the launcher's words are the engine's own."""

from __future__ import annotations

import pytest

from engine.launch_forms import launch_from_request
from engine.models.resolver import ModelResolver
from engine.models.settings import ModelSettings
from engine.preflight import check
from engine.verdict import Verdict

resolver = ModelResolver(ModelSettings.from_environment({"GRAPHGATE_OFFLINE": "1"}))


def verdict(*arguments: str) -> Verdict:
    body = {"model": "meta-llama/Llama-3.1-8B-Instruct", "arguments": list(arguments)}
    return check(launch_from_request(body), resolver).verdict


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tp-size", "2", "--nnodes", "4"), "tp_size must be divisible by number of nodes"),
        (
            ("--pp-size", "2", "--speculative-algorithm", "NGRAM"),
            "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
        ),
    ],
)
def test_what_the_launcher_refuses_is_rejected(arguments: tuple[str, ...], says: str) -> None:
    answer = verdict(*arguments)
    assert answer.verdict == "rejected"
    assert answer.prediction.outcome == "resolved"
    (finding,) = [f for f in answer.findings if f.rule == "GG102"]
    assert says in finding.message


@pytest.mark.parametrize("arguments", [(), ("--tp-size", "4", "--nnodes", "2"), ("--pp-size", "2")])
def test_what_the_launcher_starts_has_no_finding(arguments: tuple[str, ...]) -> None:
    assert not [f for f in verdict(*arguments).findings if f.rule == "GG102"]
