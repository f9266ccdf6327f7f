"""What an older release answers where a newer one has more: rows by release, absent arguments and variables."""

from __future__ import annotations

import pytest

from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.predict import predict
from engine.sglang.releases import known_releases, newest_release, release_named
from engine.sglang.versioned import FIRST, at

ROWS = (((0, 5, 23), "new"), ((0, 5, 21), "middle"), (FIRST, "old"))
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("version", "value"),
    [((0, 5, 24), "new"), ((0, 5, 23), "new"), ((0, 5, 22), "middle"), ((0, 5, 21), "middle"), ((0, 5, 20), "old")],
)
def test_a_row_holds_from_its_release_to_the_next_row(version: tuple[int, int, int], value: str) -> None:
    assert at(ROWS, version) == value


def test_rows_that_begin_later_are_a_mistake() -> None:
    with pytest.raises(LookupError, match=r"0\.5\.14"):
        at(ROWS[:1], (0, 5, 14))


def test_an_argument_that_came_later_has_its_later_default_and_no_option() -> None:
    older = release_named("0.5.21")
    assert older.absent["attn_dp_size"] == 1
    assert "--attn-dp-size" not in older.options.by_string
    assert not older.absent.keys() & older.defaults.keys()
    assert older.absent_environment["SGLANG_DSV4_FLYDSL_DECODE"] is not None


def test_the_newest_release_lacks_nothing() -> None:
    assert not newest_release().absent
    assert not newest_release().absent_environment
    assert known_releases()[-1] == newest_release().text


@pytest.mark.parametrize(("release", "width"), [("0.5.23", 1), ("0.5.22", 1), ("0.5.21", 2)])
def test_attention_data_parallelism_is_reported_by_the_releases_own_name(release: str, width: int) -> None:
    """0.5.22 moved the width of ``--enable-dp-attention`` from ``dp_size`` to an argument of its own."""
    launch = Launch(
        model=ModelRef(path="llama"),
        release=release,
        gpu="H200",
        arguments=("--tp-size", "4", "--dp-size", "2", "--enable-dp-attention"),
    )
    facts = ModelFacts(model_id=None, source="inline", config=LLAMA)
    args = predict(launch, facts, gpu_named("H200")).prediction.to_dict()["args"]
    assert args["dp_size"] == width
    assert args["enable_dp_attention"] is (release == "0.5.21")
    assert args["chunked_prefill_size"] == 8192 // 2
    assert "attn_dp_size" not in args
