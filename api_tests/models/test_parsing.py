"""Bytes to config: what is taken, what is refused, and what the refusal says."""

from __future__ import annotations

import json
import math

import pytest

from engine.errors import ConfigTooLarge, ConfigUnreadable
from engine.models.parsing import MAX_DEPTH, read_config
from engine.models.reading import facts_of


def test_bare_infinities_are_taken() -> None:
    config = read_config('{"time_step_limit": [0.0, Infinity], "low": -Infinity, "nothing": NaN}')
    assert config["time_step_limit"] == [0.0, math.inf]
    assert config["low"] == -math.inf
    assert math.isnan(config["nothing"])


def test_a_byte_order_mark_is_taken() -> None:
    assert read_config(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1', "line 1, column 8"),
        (b'{\n "a": tru}', "line 2, column 7"),
        (b"", "line 1, column 1"),
        (b"<!DOCTYPE html>", "line 1, column 1"),
        (b"[1]", "a JSON list"),
        (b'"text"', "a JSON string"),
        (b"null", "a JSON null"),
        (b"12", "a JSON number"),
        (b'{"a": "\xff"}', "byte 7"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, f"deeper than {MAX_DEPTH}"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable JSON"),
    ],
)
def test_what_is_no_config(text: bytes, said: str) -> None:
    with pytest.raises(ConfigUnreadable) as caught:
        read_config(text)
    assert said in caught.value.detail
    assert caught.value.remedy


def test_a_key_given_twice_is_named() -> None:
    with pytest.raises(ConfigUnreadable) as caught:
        read_config('{"text_config": {"num_hidden_layers": 4, "num_hidden_layers": 8}}')
    assert caught.value.field == "num_hidden_layers"


def test_the_limit_is_in_bytes_and_inclusive() -> None:
    text = json.dumps({"a": "é" * 10}, ensure_ascii=False)
    size = len(text.encode())
    assert read_config(text, limit=size)
    for given in (text, text.encode()):
        with pytest.raises(ConfigTooLarge, match=f"{size} bytes"):
            read_config(given, limit=size - 1)


@pytest.mark.parametrize("config", [[], "text", None, 3])
def test_an_inline_config_is_an_object(config: object) -> None:
    with pytest.raises(ConfigUnreadable):
        facts_of(config)  # type: ignore[arg-type]  # what a request may hold
