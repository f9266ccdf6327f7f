"""``--config FILE`` against the engine's own merger (``scripts/ask_config_files.py``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_tests.conformance.launches import config
from engine.errors import InvalidLaunch
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.config_file import file_named, merged
from engine.sglang.predict import predict
from engine.sglang.releases import release_named
from engine.sglang.resolution import Refusal

FOLDER = Path(__file__).parent / "config_files"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
ANSWERS: dict[str, dict[str, Any]] = {
    release: json.loads((FOLDER / f"merged-{release}.json").read_text(encoding="utf-8"))
    for release in ("0.5.22", "0.5.23")
}
OF_THE_FILE_SYSTEM = {"no-file", "wrong-suffix"}
"""What the engine refuses before it reads: the command line's part, see ``api_tests/cli/test_config_files.py``."""


@pytest.mark.parametrize("release", ANSWERS)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case["name"] not in OF_THE_FILE_SYSTEM], ids=lambda case: str(case["name"])
)
def test_a_file_is_merged_as_the_engine_merges_it(case: dict[str, Any], release: str) -> None:
    expected = ANSWERS[release][case["name"]]
    content = yaml.safe_load(case["file"] or "")
    if isinstance(expected, list):
        assert merged(case["words"], content, release_named(release)) == expected
        return
    with pytest.raises(Refusal) as caught:
        merged(case["words"], content, release_named(release))
    assert (caught.value.type, caught.value.message) == (expected["type"], expected["message"])


def test_the_file_is_named_by_two_words() -> None:
    assert file_named(["--tp", "2", "--config", "a.yaml"]) == "a.yaml"
    assert file_named(["--config=a.yaml"]) is None


def test_another_configuration_in_the_place_of_the_models_is_asked_for() -> None:
    launch = Launch(
        model=ModelRef(path="llama"), release="0.5.23", gpu="H200", arguments=("--decrypted-config-file", "/a.json")
    )
    facts = ModelFacts(model_id=None, source="inline", config=config("llama"))
    with pytest.raises(InvalidLaunch, match="decrypted-config-file") as caught:
        predict(launch, facts, gpu_named("H200"))
    assert caught.value.field == "arguments"
