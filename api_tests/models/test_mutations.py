"""Whatever a config holds, reading it gives facts or a typed error, and facts that hold together."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ConfigTooLarge, ConfigUnreadable
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.models.parsing import read_config
from engine.models.reading import facts_of

CONFIGS = Path(__file__).parent.parent / "fixtures" / "configs"

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 70)
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["", "mamba", "attention", "linear_attention", "M*-E", "kimi_linear", "zaya", "float16", "é\u202e"]
    )
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.sampled_from(sorted(catalogue.config_keys())), inner, max_size=4)
    ),
    max_leaves=12,
)


@cache
def seeds() -> tuple[dict[str, Any], ...]:
    fixtures = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONFIGS.glob("*.json"))]
    listed = [dict(facts.config) for name in catalogue.ids()[::9] if (facts := catalogue.find(name))]
    return (*fixtures, *listed)


def outcome(config: dict[str, Any]) -> ModelFacts | ConfigUnreadable:
    """The facts, or the one error that there may be."""
    try:
        return facts_of(config)
    except ConfigUnreadable as error:
        return error


def check(config: dict[str, Any]) -> None:
    found = outcome(config)
    if isinstance(found, ConfigUnreadable):
        assert found.detail
        assert found.remedy
    else:
        sound(found)


def sound(facts: ModelFacts) -> None:
    """What holds for the facts of any model."""
    assert len(facts.layer_kinds) == facts.num_layers
    assert bool(facts.hybrid_evidence) == (facts.hybrid != "none") == (facts.linear is not None)
    carried = {kind.rsplit("+", 1)[-1] for kind in facts.layer_kinds}
    assert facts.hybrid == "none" or facts.hybrid in carried
    json.dumps(facts.summary())


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_mutated_config_is_read_or_refused(data: st.DataObject) -> None:
    config: dict[str, Any] = copy.deepcopy(data.draw(st.sampled_from(seeds())))
    for _ in range(data.draw(st.integers(1, 4))):
        place: dict[str, Any] = config
        nested: list[dict[str, Any]] = [value for value in config.values() if isinstance(value, dict)]
        inside = data.draw(st.booleans())
        if nested and inside:
            place = data.draw(st.sampled_from(nested))
        keys = sorted({*place, *data.draw(st.lists(st.sampled_from(sorted(catalogue.config_keys())), max_size=2))})
        if not keys:
            continue
        key = data.draw(st.sampled_from(keys))
        if data.draw(st.booleans()) and key in place:
            del place[key]
        else:
            place[key] = data.draw(VALUES)
    check(config)


@given(config=st.dictionaries(st.sampled_from(sorted(catalogue.config_keys())), VALUES, max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_made_up_config_is_read_or_refused(config: dict[str, Any]) -> None:
    check(config)


@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(max_examples=200, deadline=None)
def test_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        found: object = read_config(data, limit=50)
    except (ConfigUnreadable, ConfigTooLarge) as error:
        found = error
    if isinstance(found, ConfigTooLarge):
        assert len(data) > 50
    else:
        assert isinstance(found, dict | ConfigUnreadable)
        assert len(data) <= 50
