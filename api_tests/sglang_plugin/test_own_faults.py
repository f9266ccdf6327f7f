"""The plugin never breaks a launch by its own fault: unknown, newer and mended engines, and helpers that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_tests.sglang_plugin.engines import FakeEngine, engine_at
from api_tests.sglang_plugin.test_rule import NAMED, UNASKED


def test_an_unknown_layout_is_one_warning_and_no_hooks(tmp_path: Path) -> None:
    engine = engine_at(tmp_path, "arguments")
    engine.write("sglang/srt/server_args.py", "class ServerArgs:\n    def __post_init__(self): ...\n")
    ended = engine.script(
        "from sglang.srt.plugins import hook_registry as r; answers.append(str(r.HookRegistry.hooks))"
    )
    assert ended.answers == ["[]"]
    assert ended.said("WARNING") == ["WARNING: graphgate: the layout of SGLang 0.5.18 is unknown; no hooks are set."]


def test_an_engine_without_arguments_at_all_is_unknown_too(tmp_path: Path) -> None:
    engine = engine_at(tmp_path, "arguments")
    (tmp_path / "sglang/srt/server_args.py").unlink()
    assert len(engine.script("").said("WARNING")) == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sglang/srt/arg_groups/cuda_graph_hook.py", "\nfrom sglang.srt.configs.hybrid_arch import mambaish_config\n"),
        (
            "sglang/srt/model_executor/runner/prefill_cuda_graph_runner.py",
            "\ndef prepare(backend):\n    backend.init_cuda_graph_state(8, 8)\n",
        ),
    ],
    ids=["looks for hybrid models itself", "allocates for prefill"],
)
def test_an_engine_with_the_rule_is_left_alone(newest: FakeEngine, file: str, text: str) -> None:
    newest.add(file, text)
    ended = newest.launch(NAMED, UNASKED)
    assert ended.answers == ["full", "full"]
    assert ended.said("WARNING") + ended.said("INFO") == []
    assert ended.said("DEBUG") == ["DEBUG: graphgate: SGLang 0.5.23 has the rule itself; no hooks are set."]


@pytest.mark.parametrize("release", ["0.5.24", "0.6.0", "1.0.0", "0.0.0.dev0", "", "main"])
def test_a_release_that_nobody_has_checked_is_only_warned_about(tmp_path: Path, release: str) -> None:
    engine = engine_at(tmp_path, "pipeline", release)
    ended = engine.launch(NAMED, UNASKED)
    on = engine.launch(NAMED, UNASKED, GRAPHGATE_SGLANG="on")
    assert ended.answers == ["full", "full"]
    assert len(ended.said("WARNING")) == 2
    assert on.answers[0].startswith("ValueError: graphgate GG101")
    assert on.answers[1] == "disabled"


@pytest.mark.parametrize("release", ["0.5.15", "0.5.22.post1", "0.5.23+cu130"])
def test_builds_of_a_checked_release_are_checked(tmp_path: Path, release: str) -> None:
    assert engine_at(tmp_path, "pipeline", release).launch(NAMED).answers[0].startswith("ValueError: graphgate GG101")


def test_a_model_that_cannot_be_read_is_the_engines_to_refuse(any_engine: FakeEngine) -> None:
    ended = any_engine.launch({"model_path": "broken", "cuda_graph_backend_prefill": "full"})
    assert ended.answers == ["full"]
    assert ended.said("WARNING") == ["WARNING: graphgate: the check failed; the launch goes on unchecked."]


def test_a_helper_that_raises_is_logged_and_passed_over(newest: FakeEngine) -> None:
    newest.write("sglang/srt/configs/hybrid_arch.py", "def mambaish_config(model): raise TypeError('changed')\n")
    ended = newest.launch(NAMED, UNASKED)
    assert ended.answers == ["full", "full"]
    assert ended.said("WARNING") == ["WARNING: graphgate: the check failed; the launch goes on unchecked."] * 2


def test_a_registry_of_another_form_is_a_warning(newest: FakeEngine) -> None:
    path = newest.root / "sglang/srt/plugins/hook_registry.py"
    path.write_text(path.read_text().replace("AFTER", "BEHIND"))
    ended = newest.launch(NAMED)
    assert ended.answers == ["full"]
    assert ended.said("WARNING") == ["WARNING: graphgate: could not take hold of this SGLang; nothing is guarded."]


def test_a_launch_without_a_model_is_nothing_to_check(any_engine: FakeEngine) -> None:
    ended = any_engine.launch({"model_path": "dummy"})
    assert ended.answers == [None]
    assert ended.said("WARNING") == []


def test_what_a_later_step_switches_off_is_not_refused(any_engine: FakeEngine) -> None:
    assert any_engine.launch({**NAMED, "later": "disables"}).answers == ["disabled"]


def test_the_engines_own_refusal_stays_what_it_is(any_engine: FakeEngine) -> None:
    assert any_engine.launch({**NAMED, "later": "refuses"}).answers == ["NotImplementedError: not together"]
