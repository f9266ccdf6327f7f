"""What is said to be at hand is answered without anybody being asked."""

from __future__ import annotations

import pytest

from api_tests.hub import HubServer
from engine.launch import ModelRef
from engine.models.resolver import ModelResolver, ModelSettings

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64}
WELL_KNOWN = "meta-llama/Llama-3.1-8B-Instruct"


def resolver(hub: HubServer, **changes: float | str) -> ModelResolver:
    """A resolver that asks this hub."""
    return ModelResolver(ModelSettings(**{"hub_endpoint": hub.endpoint, "timeout_s": 5.0, **changes}))  # type: ignore[arg-type] # of each setting's type


def test_a_model_of_the_hub_is_at_hand_once_it_was_asked_for(hub: HubServer) -> None:
    hub.add("someone/some-model", CONFIG)
    asking, ref = resolver(hub), ModelRef(id="someone/some-model")
    assert not asking.at_hand(ref)
    facts = asking.resolve(ref)
    asked = len(hub.requests)
    assert asking.at_hand(ref)
    assert asking.resolve(ref) is facts
    assert len(hub.requests) == asked
    assert not asking.at_hand(ModelRef(id="someone/some-model", revision="main"))


def test_what_will_be_asked_for_again_at_once_is_not_at_hand(hub: HubServer) -> None:
    hub.add("someone/some-model", CONFIG)
    asking, ref = resolver(hub, refresh_s=0.5), ModelRef(id="someone/some-model")
    asking.resolve(ref)
    assert not asking.at_hand(ref)


def test_the_catalogue_is_at_hand_where_it_is_preferred(hub: HubServer) -> None:
    assert resolver(hub).at_hand(ModelRef(id=WELL_KNOWN))
    assert not resolver(hub).at_hand(ModelRef(id=WELL_KNOWN, revision="main"))
    assert not resolver(hub, prefer="hub").at_hand(ModelRef(id=WELL_KNOWN))


@pytest.mark.parametrize(
    "ref", [ModelRef(path="/models/llama"), ModelRef(config=CONFIG), ModelRef(), ModelRef(id=WELL_KNOWN, path="/x")]
)
def test_files_configs_and_wrong_references_are_not(hub: HubServer, ref: ModelRef) -> None:
    assert not resolver(hub).at_hand(ref)
