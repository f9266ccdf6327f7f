"""A command line is parsed as argparse parses it, over the options of each release."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api_tests.sglang.reference_parser import answer, reference
from engine.sglang.releases import known_releases, release_named
from engine.sglang.resolution import Refusal

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the engine's images parse with Python 3.11; its argparse is the reference"
)

VALUES = (
    "1", "-1", "-0.5", "8", "0.9", "auto", "fa3", "full", "None", "", "a b", "--", "-", "-x", "-5x", "1k", "1.5k",
    "1Ki", "1.5Ki", "true", "[1, 2]", "{}",
    '{"prefill": {"backend": "full"}}', '{"prefill": {"backend": "tc_piecewise"}}',
    '{"a": 1}', "null", "{prefill: full}", "--nothing", "--tp", "--max", "1e3", " 7 ", "-.5", "--tp 4", "a=b",
)  # fmt: skip


@cache
def parser_of(release: str) -> argparse.ArgumentParser:
    return reference(release)


@cache
def strings_of(release: str) -> tuple[str, ...]:
    return tuple(s for s in release_named(release).options.by_string if s not in ("-h", "--help"))


def ours(release: str, words: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
    try:
        return dict(release_named(release).options.parse(words).values), ""
    except Refusal as refusal:
        return None, refusal.message.strip() if refusal.stage == "parse" else refusal.type


@st.composite
def command_lines(draw: st.DrawFn, release: str) -> list[str]:
    words: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        option = draw(st.sampled_from(strings_of(release)))
        if draw(st.integers(0, 3)) == 0:
            option = option[: draw(st.integers(3, len(option)))]
        values = draw(st.lists(st.sampled_from(VALUES), max_size=3))
        if values and draw(st.integers(0, 3)) == 0:
            option, values = f"{option}={values[0]}", values[1:]
        words += [option, *values]
    return words


def explicit_double_hyphen(words: Sequence[str]) -> bool:
    """``--option=--``: argparse 3.11 loses the value and fails inside itself; no launch says that."""
    return any(word.endswith("=--") for word in words)


@pytest.mark.parametrize("release", known_releases())
@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_same_answer_as_argparse(release: str, data: st.DataObject) -> None:
    words = data.draw(command_lines(release))
    if explicit_double_hyphen(words) or "--model-path" in words:
        return
    expected, message = answer(parser_of(release), words)
    assert ours(release, words) == (expected, message)


@pytest.mark.parametrize(
    "words",
    [
        ["--tp", "4"],
        ["--cuda-graph-max-bs", "8"],
        ["--cuda-graph-bs-decode", "1", "2", "--tp-size=2"],
        ["--disable-piecewise-cuda-graph"],
        ["--tp-size", "two"],
        ["--attention-backend", "cutlass_mla"],
        ["--chunked-prefill-size", "-1"],
        ["--served-model-name", "--tp-size", "2"],
        ["extra", "--tp-size", "2", "words"],
        ["--", "--tp-size", "2"],
        ["--lora-paths"],
        ["--cuda-graph-bs-decode"],
        ["--disable-cuda-graph=yes"],
        ["--no-lora-strict-loading"],
        ["--context-length", "1.5Ki"],
    ],
)
def test_odd_lines(words: list[str]) -> None:
    release = known_releases()[-1]
    assert ours(release, words) == answer(parser_of(release), words)


def test_help_launches_nothing() -> None:
    with pytest.raises(Refusal) as caught:
        release_named(known_releases()[-1]).options.parse(["--help"])
    assert (caught.value.stage, caught.value.type) == ("parse", "ArgumentError")


def test_retired_switches_warn_with_their_replacement() -> None:
    parsed = release_named("0.5.23").options.parse(["--disable-cuda-graph"])
    assert parsed.values == {"disable_cuda_graph": True}
    assert "--cuda-graph-backend-{decode,prefill}=disabled" in parsed.warnings[0]
