"""Settings from the environment, ids and revisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import InvalidLaunch, InvalidModelId, QuestionError
from engine.launch import ModelRef
from engine.models.identifiers import check_id, check_revision
from engine.models.resolver import ModelResolver
from engine.models.settings import DEFAULT_ENDPOINT, ModelSettings


def test_the_defaults_need_nothing() -> None:
    settings = ModelSettings.from_environment({})
    assert settings.hub_endpoint == DEFAULT_ENDPOINT
    assert (settings.token, settings.offline, settings.allowed_roots, settings.cache_dir) == (None, False, (), None)
    assert settings == ModelSettings()


def test_the_hub_s_own_variables_are_understood() -> None:
    settings = ModelSettings.from_environment(
        {"HF_ENDPOINT": "https://mirror.example/", "HF_TOKEN": " hf_x ", "HF_HUB_OFFLINE": "1", "HF_HOME": "/cache"}
    )
    assert settings.hub_endpoint == "https://mirror.example"
    assert (settings.token, settings.offline) == ("hf_x", True)
    assert settings.hub_cache == Path("/cache/hub")


def test_graphgate_s_variables_win() -> None:
    settings = ModelSettings.from_environment(
        {
            "GRAPHGATE_HUB_ENDPOINT": "http://hub.internal:8080", "HF_ENDPOINT": "https://mirror.example",
            "GRAPHGATE_HUB_TOKEN": "a", "HF_TOKEN": "b", "GRAPHGATE_OFFLINE": "0", "HF_HUB_OFFLINE": "1",
            "GRAPHGATE_HUB_TIMEOUT": "2.5", "GRAPHGATE_MODEL_ROOTS": "/models:/more models", "GRAPHGATE_DATA": "/data",
            "GRAPHGATE_MAX_CONFIG_BYTES": "1000", "GRAPHGATE_MODEL_PREFER": "hub",
        }
    )  # fmt: skip
    assert settings.hub_endpoint == "http://hub.internal:8080"
    assert (settings.token, settings.offline, settings.timeout_s) == ("a", False, 2.5)
    assert settings.allowed_roots == (Path("/models"), Path("/more models"))
    assert settings.cache_dir == Path("/data/models")
    assert (settings.max_config_bytes, settings.prefer) == (1000, "hub")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GRAPHGATE_HUB_TIMEOUT", "soon"),
        ("GRAPHGATE_HUB_TIMEOUT", "-1"),
        ("GRAPHGATE_HUB_TIMEOUT", "inf"),
        ("GRAPHGATE_HUB_TIMEOUT", "nan"),
        ("GRAPHGATE_HUB_ENDPOINT", "ftp://hub"),
        ("GRAPHGATE_HUB_ENDPOINT", "https://user:password@hub.internal"),
        ("GRAPHGATE_MODEL_PREFER", "both"),
    ],
)
def test_what_cannot_be_understood_is_named(name: str, value: str) -> None:
    with pytest.raises(QuestionError, match=name):
        ModelSettings.from_environment({name: value})


@pytest.mark.parametrize(
    "model_id", ["gpt2", "meta-llama/Llama-3.1-8B-Instruct", "nvidia/Llama-3_3-Nemotron", "01-ai/Yi", "_x/y_"]
)
def test_ids(model_id: str) -> None:
    assert check_id(model_id) == model_id


@pytest.mark.parametrize(
    "model_id",
    [
        "", " ", "a b/c", "a/b/c", "a//b", "/a", "a/", "../a", "a/..", "a/b..c", "a\\b", "a/b\n", "a/\0", "a/b?x=1",
        "a/b#c", "a/b%2e", "-a/b", "a/b-", ".a/b", "a/b.", "a--b/c", "a/b.git", "http://x/y", "a/" + "b" * 96, "ä/b",
        "a/b\u202e",
    ],
)  # fmt: skip
def test_what_is_no_id(model_id: str) -> None:
    with pytest.raises(InvalidModelId) as caught:
        check_id(model_id)
    assert caught.value.field == "model.id"


@pytest.mark.parametrize(
    "revision", ["main", "v1.0", "refs/pr/12", "0123456789abcdef0123456789abcdef01234567", "feature_x+1"]
)
def test_revisions(revision: str) -> None:
    assert check_revision(revision) == revision


@pytest.mark.parametrize(
    "revision", ["", "../main", "a..b", "a b", "-x", "/a", "a//b", "a\n", "a?b", "a\\b", "x" * 201]
)
def test_what_is_no_revision(revision: str) -> None:
    with pytest.raises(InvalidModelId) as caught:
        check_revision(revision)
    assert caught.value.field == "model.revision"


@pytest.mark.parametrize("ref", [ModelRef(), ModelRef(id="a/b", path="c"), ModelRef(id="a/b", config={})])
def test_exactly_one_source(ref: ModelRef) -> None:
    with pytest.raises(InvalidLaunch):
        ModelResolver().resolve(ref)
