"""The packaged catalogue: what it has, what its entries are worth, how fast it answers."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api_tests.material import MATERIAL, ROOT, material
from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models import catalogue
from engine.models.facts import ModelFacts
from engine.models.local import read_local
from engine.models.reading import facts_of
from engine.models.resolver import ModelResolver
from engine.sglang.predict import predict

WELL_KNOWN = {
    # published by the models' authors: family of the carried state, layers
    "meta-llama/Llama-3.1-8B-Instruct": ("none", 32),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": ("gdn", 48),
    "Qwen/Qwen3.5-27B": ("gdn", 64),
    "moonshotai/Kimi-K3": ("kda", 93),
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": ("kda", 27),
    "moonshotai/Kimi-K2.5": ("none", 61),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("mamba2", 52),
    "ibm-granite/granite-4.0-h-tiny": ("mamba2", 40),
    "tiiuae/Falcon-H1-7B-Instruct": ("mamba2", 44),
    "tiiuae/falcon-mamba-7b": ("mamba", 64),
    "LiquidAI/LFM2-8B-A1B": ("shortconv", 24),
    "MiniMaxAI/MiniMax-M1-80k": ("lightning", 80),
    "jet-ai/Jet-Nemotron-4B": ("gdn", 36),
    "deepseek-ai/DeepSeek-V3": ("none", 61),
    "openai/gpt-oss-120b": ("none", 36),
    "google/gemma-3-27b-it": ("none", 62),
    "mistralai/Mistral-7B-v0.1": ("none", 32),
}

ARGUMENTS: tuple[tuple[str, ...], ...] = (
    (),
    ("--tp", "8"),
    ("--tp", "4", "--dp", "2", "--enable-dp-attention"),
    ("--cuda-graph-config", '{"prefill": {"backend": "full"}}'),
    ("--trust-remote-code", "--quantization", "fp8"),
)


def published() -> dict[str, Path]:
    """The published configs by the model's id: whole ones before partial ones."""
    files: dict[str, Path] = {}
    for path in sorted(material("models").rglob("*.json"), key=lambda path: -len(path.parts)):
        files[path.stem.replace("--", "/", 1)] = path
    return files


def found(model_id: str) -> ModelFacts:
    facts = catalogue.find(model_id)
    assert facts is not None
    return facts


def completed(facts: ModelFacts) -> bool:
    return any("incomplete copy" in note for note in facts.notes)


def test_it_has_the_well_known_models() -> None:
    assert len(catalogue.ids()) >= 100
    answers = {name: (found(name).hybrid, found(name).num_layers) for name in WELL_KNOWN}
    assert answers == WELL_KNOWN


def test_every_entry_can_be_served() -> None:
    for name in catalogue.ids():
        facts = found(name)
        assert facts.architecture, name
        assert facts.source == "catalogue"
        assert catalogue.NOTE in facts.notes
        assert facts.model_id == name


def test_the_lines_are_the_file() -> None:
    file = json.loads((ROOT / "engine" / "models" / "catalogue.json").read_text(encoding="utf-8"))
    assert list(file["models"]) == list(catalogue.ids())
    assert all(found(name).config == entry["config"] for name, entry in file["models"].items())


def test_the_hub_s_ids_do_not_tell_cases_apart() -> None:
    assert found("qwen/qwen3-8b").model_id == "Qwen/Qwen3-8B"
    assert catalogue.find("qwen/qwen3-8") is None


def test_the_same_question_gives_the_same_object() -> None:
    resolver = ModelResolver()
    ref = ModelRef(id="Qwen/Qwen3-8B")
    assert resolver.resolve(ref) is resolver.resolve(ref)


def test_an_equal_inline_config_gives_the_same_object() -> None:
    resolver = ModelResolver()
    first, again, other = (
        resolver.resolve(ModelRef(config={"model_type": "llama", "num_hidden_layers": layers})) for layers in (2, 2, 3)
    )
    assert first is again
    assert (first.num_layers, other.num_layers, first.source) == (2, 3, "inline")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("meta-llama/Llama-3.1-8B-Instrct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("qwen3-next-80b-a3b-instruct", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    ],
)
def test_near_names(asked: str, meant: str) -> None:
    assert meant in catalogue.near(asked)


def test_nothing_is_near_to_nonsense() -> None:
    assert catalogue.near("zzzz/qqqq") == []


def test_what_is_kept_of_a_config_gives_the_same_facts() -> None:
    for name, path in published().items():
        whole = read_local(path)
        kept = facts_of(catalogue.pruned(whole.config), model_id=whole.model_id, source="local")
        assert dataclasses.replace(kept, config={}) == dataclasses.replace(whole, config={}), name


def test_entries_are_the_published_files() -> None:
    files = published()
    for name in catalogue.ids():
        facts = found(name)
        if not completed(facts):
            whole = facts_of(read_local(files[name]).config, model_id=name, source="catalogue")
            assert dataclasses.replace(facts, config={}, notes=()) == dataclasses.replace(whole, config={}, notes=())


@pytest.mark.parametrize("gpu", ["H200", "B200"])
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_entries_are_predicted_as_the_published_files(gpu: str, arguments: tuple[str, ...]) -> None:
    files = published()

    def prediction(name: str, facts: ModelFacts) -> dict[str, Any]:
        launch = Launch(model=ModelRef(id=name), arguments=arguments, gpu=gpu)
        return predict(launch, facts, gpu_named(gpu)).prediction.to_dict()

    for name in catalogue.ids():
        facts = found(name)
        if not completed(facts):
            whole = dataclasses.replace(read_local(files[name]), model_id=name)
            assert prediction(name, facts) == prediction(name, whole), name


def test_the_files_are_what_the_script_makes() -> None:
    material("models")
    script = ROOT / "scripts" / "make_catalogue.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check", str(MATERIAL / "models")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_answer_comes_fast() -> None:
    """A fresh process loads the catalogue and reads one entry in far less than a start-up can afford."""
    code = (
        "import time; from engine.models import catalogue; t = time.process_time(); "
        "catalogue.find('Qwen/Qwen3-Next-80B-A3B-Instruct'); print(time.process_time() - t)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.010


def test_no_heavy_import_on_the_way() -> None:
    code = (
        "import sys; from engine.launch import ModelRef; from engine.models.resolver import ModelResolver; "
        "ModelResolver().resolve(ModelRef(id='Qwen/Qwen3-8B')); "
        "print([m for m in ('httpx', 'huggingface_hub', 'pydantic', 'yaml', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
