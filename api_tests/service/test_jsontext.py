"""JSON, read strictly and written validly."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jsontext import JsonError, dumps, loads, shown

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def read(data: bytes) -> object:
    """The value, within roomy limits."""
    return loads(data, depth=64, items=10_000, loose=(("model", "config"),))


@given(VALUES)
def test_what_is_written_is_read_back(value: object) -> None:
    assert read(dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_json_error(data: bytes) -> None:
    try:
        value = read(data)
    except JsonError:
        return
    assert json.loads(data.decode("utf-8").removeprefix("\ufeff")) == value


@given(st.recursive(st.floats() | st.text(st.characters()), lambda inner: st.lists(inner), max_leaves=8))
def test_what_is_written_is_json_whatever_it_is(value: object) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    json.loads(dumps(value).decode("utf-8"), parse_constant=refuse)


def test_infinity_is_taken_inside_a_config_alone() -> None:
    value = read(b'{"model": {"config": {"a": [Infinity, {"b": NaN}]}}}')
    assert isinstance(value, dict)
    assert value["model"]["config"]["a"][0] == math.inf
    with pytest.raises(JsonError, match=r"model\.id"):
        read(b'{"model": {"id": NaN, "config": {"a": Infinity}}}')


@given(st.text())
def test_what_is_shown_holds_no_control_characters(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) < 700
