"""The guard of the state tables, in an engine whose tables are lists as SGLang's are."""

from __future__ import annotations

from api_tests.sglang_plugin.engines import FakeEngine

CALLS = """
import enum
class ForwardMode(enum.Enum):
    EXTEND = 1
    DECODE = 2
    def is_decode_or_idle(self): return self is ForwardMode.DECODE
def call(function, *args, **kwargs):
    try:
        answers.append(str(function(*args, **kwargs)))
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error} <- {type(error.__cause__).__name__}")
from sglang.srt.layers.attention.hybrid_linear_attn_backend import GDNAttnBackend
backend = GDNAttnBackend()
"""

UNINITIALISED = (
    "CUDA graph metadata of the GDNAttnBackend linear-attention backend: state_indices_list was asked for batch size 4 "
    "in prefill and holds 0 sizes: it is not initialised. Only the decode runner calls init_cuda_graph_state(), and "
    "the prefill runner captures before the decode runner exists. Write '--cuda-graph-backend-prefill breakable' or "
    "'disabled' (prefill.backend in --cuda-graph-config) instead of full."
)


def test_a_table_that_nobody_allocated_is_named_with_the_way_out(any_engine: FakeEngine) -> None:
    ended = any_engine.script(f"{CALLS}call(backend._replay_metadata, 4, [7], ForwardMode.EXTEND)")
    assert ended.answers == [f"RuntimeError: {UNINITIALISED} <- IndexError"]


def test_a_table_that_is_too_small_says_how_small(newest: FakeEngine) -> None:
    ended = newest.script(
        f"{CALLS}backend.init_cuda_graph_state(2, 2)\n"
        "call(backend._replay_metadata, bs=4, req_pool_indices=[7], forward_mode=ForwardMode.DECODE)"
    )
    assert len(ended.answers) == 1
    assert "batch size 4 in decode and holds 2 sizes: it is too small" in ended.answers[0]
    assert "to 2, or raise max_bs of init_cuda_graph_state()" in ended.answers[0]


def test_a_method_of_a_subclass_is_guarded_too(newest: FakeEngine) -> None:
    ended = newest.script(
        f"{CALLS}backend.state_indices_list = [[0]] * 9\n"
        "call(backend._capture_metadata, 4, [7], ForwardMode.DECODE, None)"
    )
    assert "RuntimeError" in ended.answers[0]
    assert "query_start_loc_list was asked for batch size 4 in decode and holds 0 sizes" in ended.answers[0]
    assert "instead of full" not in ended.answers[0]


def test_what_works_and_what_fails_otherwise_is_untouched(newest: FakeEngine) -> None:
    ended = newest.script(
        f"{CALLS}backend.init_cuda_graph_state(4, 4)\n"
        "call(backend._replay_metadata, 4, [7], ForwardMode.DECODE)\n"
        "call(lambda: backend.state_indices_list[3])\n"
        "call(backend._replay_metadata, 4, [7], ForwardMode.DECODE, 'fails')\n"
        "call(backend._replay_metadata)\n"
        "answers.append(backend._replay_metadata.__name__)"
    )
    assert ended.answers[:3] == ["[0, 0, 0, 0, 0]", "[7, 0, 0, 0]", "IndexError: list index out of range <- NoneType"]
    assert ended.answers[3].startswith("TypeError")
    assert ended.answers[4] == "_replay_metadata"


def test_the_module_is_imported_by_the_engine_alone(any_engine: FakeEngine) -> None:
    assert any_engine.script("").imported == []


def test_a_module_that_is_there_already_is_guarded_at_once(newest: FakeEngine) -> None:
    newest.add("sglang/srt/plugins/__init__.py", "\nimport sglang.srt.layers.attention.hybrid_linear_attn_backend\n")
    ended = newest.script(f"{CALLS}call(backend._replay_metadata, 4, [7], ForwardMode.EXTEND)")
    assert ended.imported != []
    assert ended.answers[0].startswith("RuntimeError: CUDA graph metadata")


def test_a_module_without_the_methods_is_one_warning(newest: FakeEngine) -> None:
    newest.write("sglang/srt/layers/attention/hybrid_linear_attn_backend.py", "class Backend: pass\n")
    ended = newest.script("import sglang.srt.layers.attention.hybrid_linear_attn_backend")
    assert len(ended.said("WARNING")) == 1
    assert "has no _replay_metadata; its tables are not guarded" in ended.said("WARNING")[0]


def test_switched_off_the_engine_says_what_it_says(newest: FakeEngine) -> None:
    script = f"{CALLS}call(backend._replay_metadata, 4, [7], ForwardMode.EXTEND)"
    assert newest.script(script, GRAPHGATE_SGLANG="off").answers == ["IndexError: list index out of range <- NoneType"]
