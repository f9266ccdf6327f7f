"""Every published config of the material folder is read, and its state-carrying family is the collection's own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from api_tests.material import material
from engine.models.facts import ModelFacts
from engine.models.local import read_local
from engine.models.parsing import read_config

FAMILY = {
    "mamba1(pure)": "mamba",
    "mamba1": "mamba",
    "mamba2": "mamba2",
    "mamba2-like(plamo)": "mamba2",
    "gdn": "gdn",
    "jet(gdn-like)": "gdn",
    "kda": "kda",
    "lightning": "lightning",
    "shortconv": "shortconv",
    "cca-conv-state(mamba pool)": "shortconv",
    "shortconv(on top of attention)": "shortconv",
    "rwkv(pure)": "rwkv",
    "none": "none",
    "none(all-attention; mamba_* keys present)": "none",
}
"""The collection's words, and ours."""

NO_LAYER_COUNT = {
    "_reduced/stepfun-ai--Step-3.7-vl-shape.json",
    "llava-hf--llava-1.5-7b-hf.json",
}
"""Configs that name no number of layers anywhere: the model class's default holds."""

NESTED_ELSEWHERE = {"microsoft--VibeVoice-1.5B.json": "decoder_config"}
"""Where the collection names no nested text config, but the decoder's is one."""

STATE = {"mamba", "mamba2", "gdn", "kda", "lightning", "shortconv", "rwkv", "attention+mamba2", "attention+shortconv"}


@cache
def rows() -> tuple[dict[str, str], ...]:
    lines = material("models", "INDEX.tsv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split("\t")
    return tuple(dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:])


def facts_of_file(name: str) -> ModelFacts:
    return read_local(material("models") / name)


def test_the_families_are_the_collection_s() -> None:
    expected = {row["file"]: FAMILY[row["hybrid_family"]] for row in rows()}
    found = {name: facts_of_file(name).hybrid for name in expected}
    assert found == expected
    assert len(found) > 300


def test_evidence_is_named_for_hybrids_and_only_for_them() -> None:
    for row in rows():
        facts = facts_of_file(row["file"])
        assert bool(facts.hybrid_evidence) == (facts.hybrid != "none"), row["file"]


def test_the_layer_counts_are_the_collection_s() -> None:
    for row in rows():
        facts = facts_of_file(row["file"])
        if row["num_hidden_layers"] not in {"", "-"}:
            assert facts.num_layers == int(row["num_hidden_layers"]), row["file"]
        assert (facts.num_layers == 0) == (row["file"] in NO_LAYER_COUNT), row["file"]
        assert len(facts.layer_kinds) == facts.num_layers


def test_the_text_configs_are_where_the_collection_says() -> None:
    expected = {row["file"]: row["text_config_key"].strip("-") for row in rows()}
    expected.update({name: key for name, key in NESTED_ELSEWHERE.items() if name in expected})
    assert {name: facts_of_file(name).text_config_key for name in expected} == expected


def test_architectures_and_types_are_the_collection_s() -> None:
    for row in rows():
        facts = facts_of_file(row["file"])
        if row["architectures"] != "<absent>":
            assert list(facts.architectures) == json.loads(row["architectures"]), row["file"]
        else:
            assert facts.architecture is None
            assert "The config names no architecture." in facts.notes
        assert (facts.model_type or "<absent>") == row["model_type"], row["file"]
        if "nested architectures=" in row["oddities"]:
            inner = row["oddities"].split("nested architectures=")[1].split(";")[0]
            assert facts.text_architectures[0] == inner
            if inner != facts.architecture and facts.architecture:
                assert any(inner in note for note in facts.notes), row["file"]


def test_the_engine_finds_the_same_recurrent_layers() -> None:
    """Layers by the engine's own configuration classes (``scripts/engine_layers.py``).

    ZAYA1-8B is left out: its published config lists 40 layers that each have attention and experts; SGLang 0.5.23 does
    not read that list and takes every second layer for one without attention.
    """
    stored = json.loads((Path(__file__).parent / "engine_layers.json").read_text(encoding="utf-8"))["layers"]
    del stored["Zyphra--ZAYA1-8B.json"]
    folder = material("models")
    for name, layers in stored.items():
        kinds = read_local(folder / name).layer_kinds
        assert [i for i, kind in enumerate(kinds) if kind in STATE] == layers["recurrent"], name
        if layers["attention"]:
            assert [i for i, kind in enumerate(kinds) if "attention" in kind] == layers["attention"], name
    assert len(stored) > 40


def test_files_that_are_not_strict_json_are_read() -> None:
    odd = [row["file"] for row in rows() if "Infinity" in row["oddities"]]
    for name in odd:
        text = (material("models") / name).read_bytes()
        assert b"Infinity" in text or b"NaN" in text
        assert read_config(text)["architectures"] == ["NemotronHForCausalLM"]
    assert odd
