"""One trap, one small config: what the reading makes of it, and what it says of a config that makes no sense.

The expected layers are written by hand from what each family's publication and the engine's configuration class say;
``test_index`` holds the same reading against published files and the engine's own answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import ConfigUnreadable
from engine.models.facts import ModelFacts
from engine.models.local import read_local

CONFIGS = Path(__file__).parent.parent / "fixtures" / "configs"

LETTERS = {
    "A": "attention",
    "S": "sliding_attention",
    "C": "chunked_attention",
    "M": "mamba2",
    "m": "mamba",
    "G": "gdn",
    "K": "kda",
    "L": "lightning",
    "c": "shortconv",
    "R": "rwkv",
    "H": "attention+mamba2",
    "Z": "attention+shortconv",
    "-": "mlp",
    "E": "moe",
}

EXPECTED = {
    # file: (family, layers, the field that proves it, kind of attention)
    "llama": ("none", "AAA", "", "gqa"),
    "architectures-absent": ("none", "AAA", "", "gqa"),
    "architectures-null": ("none", "AAA", "", "gqa"),
    "layers-under-another-name": ("none", "AAAA", "", "mha"),
    "layers-missing": ("none", "", "", "mha"),
    "interval-only": ("gdn", "GGGAGGGA", "full_attention_interval", "gqa"),
    "nested-linear-attention": ("gdn", "GGGA", "text_config.layer_types", "gqa"),
    "granite-with-mamba": ("mamba2", "MMAM", "layer_types", "gqa"),
    "granite-without-mamba": ("none", "AAAA", "", "gqa"),
    "granite-without-a-list": ("mamba2", "MMMMMAMMMMMA", "model_type", "gqa"),
    "granite-renamed-layers": ("mamba2", "MAM", "layer_types", "gqa"),
    "nemotron-pattern": ("mamba2", "M-MA-M", "hybrid_override_pattern", "gqa"),
    "nemotron-pattern-experts": ("mamba2", "MEMAE", "hybrid_override_pattern", "gqa"),
    "nemotron-block-list": ("mamba2", "MEMAE", "layers_block_type", "gqa"),
    "nemotron-infinity": ("mamba2", "MA", "hybrid_override_pattern", "mha"),
    "kimi-counts-from-one": ("kda", "KKKAK", "linear_attn_config.kda_layers", "mla"),
    "kimi-nested-other-architecture": ("kda", "KA", "text_config.linear_attn_config.kda_layers", "mla"),
    "minimax-mixed": ("lightning", "LLLA", "attn_type_list", "gqa"),
    "minimax-all-attention": ("none", "AAAA", "", "gqa"),
    "sliding-is-not-recurrent": ("none", "SASA", "", "gqa"),
    "sliding-by-period": ("none", "SSASSA", "", "gqa"),
    "sliding-switched-off": ("none", "AA", "", "gqa"),
    "both-mixers-in-every-layer": ("mamba2", "HHH", "model_type", "gqa"),
    "jet-mixers": ("gdn", "GASG", "layer_types", "gqa"),
    "convolutions-by-index": ("shortconv", "ccAc", "full_attn_idxs", "gqa"),
    "convolutions-by-name": ("shortconv", "cAc", "layer_types", "gqa"),
    "convolution-on-attention": ("shortconv", "ZZZ", "text_config.use_sconv", "gqa"),
    "zaya-first-form": ("shortconv", "ZEZE", "cca", "gqa"),
    "zaya-second-form": ("shortconv", "ZZ", "layer_types", "gqa"),
    "shared-attention": ("mamba2", "MMHM", "layers_block_type", "gqa"),
    "attention-by-period": ("mamba", "mmAmmmAm", "attn_layer_period", "gqa"),
    "attention-by-index": ("mamba2", "MAMM", "attn_layer_indices", "gqa"),
    "groups-lightning": ("lightning", "LLALLA", "layer_group_size", "gqa"),
    "groups-kda": ("kda", "KAKA", "layer_group_size", "mla"),
    "mamba-step": ("mamba2", "MAMAMA", "mamba_step", "gqa"),
    "pure-mamba": ("mamba", "mmm", "model_type", "none"),
    "pure-rwkv": ("rwkv", "RRR", "model_type", "none"),
    "thinker": ("none", "AA", "", "gqa"),
    "latent-attention": ("none", "AA", "", "mla"),
    "list-longer-than-the-model": ("none", "AS", "", "gqa"),
}

WRONG = {
    # file: (the field that the error names, a word of what it says)
    "wrong-list-too-short": ("layer_types", "4 layers"),
    "wrong-unknown-layer": ("layer_types[1]", "telepathy"),
    "wrong-kimi-layer-zero": ("linear_attn_config.kda_layers[0]", "counted from 1"),
    "wrong-kimi-both": ("linear_attn_config.full_attn_layers", "Layer 2"),
    "wrong-pattern-letter": ("hybrid_override_pattern[1]", "'X'"),
    "wrong-pattern-length": ("hybrid_override_pattern", "9 layers"),
    "wrong-layer-count-text": ("num_hidden_layers", "'32'"),
    "wrong-layer-count-huge": ("num_hidden_layers", "1000000000"),
    "wrong-layer-count-negative": ("num_hidden_layers", "negative"),
    "wrong-interval-zero": ("full_attention_interval", "0"),
    "wrong-interval-without-count": ("num_hidden_layers", "missing"),
    "wrong-text-config-list": ("text_config", "object"),
    "wrong-architectures-string": ("architectures", "list"),
    "wrong-attention-index": ("attn_layer_indices[0]", "no layer 4"),
    "wrong-number-of-no-kind": ("attn_type_list[1]", "2"),
    "wrong-nothing-known": (None, "not a language model's"),
}


def facts(name: str) -> ModelFacts:
    return read_local(CONFIGS / f"{name}.json")


def test_every_config_has_an_expectation() -> None:
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(EXPECTED) | set(WRONG)


@pytest.mark.parametrize("name", EXPECTED)
def test_layers_and_family(name: str) -> None:
    family, layers, evidence, attention = EXPECTED[name]
    found = facts(name)
    assert list(found.layer_kinds) == [LETTERS[letter] for letter in layers]
    assert (found.hybrid, found.hybrid_evidence, found.attention) == (family, evidence, attention)
    assert found.num_layers == len(layers)
    json.dumps(found.summary())


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_named(name: str) -> None:
    field, said = WRONG[name]
    with pytest.raises(ConfigUnreadable) as caught:
        facts(name)
    assert caught.value.field == field
    assert said in caught.value.detail
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "key", "multimodal"),
    [
        ("llama", "", False),
        ("nested-linear-attention", "text_config", True),
        ("thinker", "thinker_config.text_config", True),
        ("layers-missing", "text_config", True),
        ("convolution-on-attention", "text_config", False),
    ],
)
def test_where_the_text_config_is(name: str, key: str, multimodal: bool) -> None:
    assert (facts(name).text_config_key, facts(name).multimodal) == (key, multimodal)


def test_an_inner_architecture_that_differs_is_noted() -> None:
    found = facts("kimi-nested-other-architecture")
    assert found.architecture == "KimiK3ForConditionalGeneration"
    assert found.text_architectures == ("KimiLinearForCausalLM",)
    assert any("KimiLinearForCausalLM" in note for note in found.notes)


@pytest.mark.parametrize("name", ["architectures-absent", "architectures-null"])
def test_a_missing_architecture_is_noted(name: str) -> None:
    assert facts(name).architecture is None
    assert facts(name).notes == ("The config names no architecture.",)


def test_a_default_pattern_is_noted() -> None:
    assert any("default pattern" in note for note in facts("granite-without-a-list").notes)


def test_a_list_longer_than_the_model_is_noted() -> None:
    assert any("first 2" in note for note in facts("list-longer-than-the-model").notes)


def test_the_numbers_of_an_attention_model() -> None:
    found = facts("latent-attention")
    assert (found.num_experts, found.experts_per_token, found.mtp_layers) == (256, 8, 1)
    assert (found.quantization, found.hidden_size, found.num_attention_heads) == ("fp8", 64, 4)
    assert (found.context_length, found.vocab_size, found.linear) == (4096, 1000, None)
    assert (facts("llama").dtype, facts("sliding-is-not-recurrent").sliding_window) == ("bfloat16", 128)
    assert facts("sliding-switched-off").sliding_window is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "interval-only",
            {"num_key_heads": 2, "num_value_heads": 4, "key_head_dim": 16, "value_head_dim": 32, "conv_kernel": 4},
        ),
        (
            "nemotron-pattern",
            {"num_value_heads": 8, "value_head_dim": 16, "state_size": 32, "num_groups": 2, "chunk_size": 128},
        ),
        ("granite-with-mamba", {"num_value_heads": 8, "value_head_dim": 16, "state_size": 32, "chunk_size": 256}),
        ("both-mixers-in-every-layer", {"num_value_heads": 8, "intermediate_size": 128, "conv_kernel": 4}),
        ("kimi-counts-from-one", {"num_key_heads": 4, "key_head_dim": 16, "conv_kernel": 4}),
        ("jet-mixers", {"num_key_heads": 4, "key_head_dim": 16, "conv_kernel": 4, "value_head_dim": None}),
        ("convolutions-by-index", {"conv_kernel": 3, "state_size": None}),
        ("groups-lightning", {"num_key_heads": 4, "key_head_dim": 16}),
    ],
)
def test_the_dimensions_of_the_recurrent_mixers(name: str, expected: dict[str, int | None]) -> None:
    linear = facts(name).linear
    assert linear is not None
    assert {key: getattr(linear, key) for key in expected} == expected


def test_the_config_itself_is_kept() -> None:
    assert facts("llama").config == json.loads((CONFIGS / "llama.json").read_text())
