"""A rewritten command line keeps the operator's words and changes one setting."""

from __future__ import annotations

import json

import pytest

from engine.guards.rewriting import backend_as_written, with_backend, with_settings, without_backend

JSON_FULL = '{"prefill": {"backend": "full", "max_bs": 64}, "decode": {"backend": "full"}}'


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (
            ("--cuda-graph-config", '{"prefill": {"backend": "full"}}'),
            """--cuda-graph-config '{"prefill": {"backend": "full"}}'""",
        ),
        (("--cuda-graph-backend-prefill", "full"), "--cuda-graph-backend-prefill full"),
        (("--cuda-graph-backend-pre=full",), "--cuda-graph-backend-pre=full"),
        (
            ("--cuda-graph-backend-prefill", "breakable", "--cuda-graph-conf", '{"prefill": {"backend": "full"}}'),
            """--cuda-graph-conf '{"prefill": {"backend": "full"}}'""",
        ),
        (("--cuda-graph-backend-decode", "full"), None),
        (("--cuda-graph-config", '{"decode": {"backend": "full"}}'), None),
    ],
)
def test_the_words_that_set_the_backend(arguments: tuple[str, ...], written: str | None) -> None:
    assert backend_as_written(arguments, "prefill") == written


def test_taking_the_backend_out_keeps_the_rest() -> None:
    arguments = ("--tp", "8", "--cuda-graph-config", JSON_FULL, "--cuda-graph-backend-prefill=full", "--page-size", "1")
    kept = without_backend(arguments, "prefill")
    assert kept[:3] == ("--tp", "8", "--cuda-graph-config")
    assert json.loads(kept[3]) == {"prefill": {"max_bs": 64}, "decode": {"backend": "full"}}
    assert kept[4:] == ("--page-size", "1")


def test_a_config_that_said_nothing_else_goes_away() -> None:
    arguments = ("--cuda-graph-config", '{"prefill": {"backend": "full"}}', "--tp", "8")
    assert without_backend(arguments, "prefill") == ("--tp", "8")
    assert with_backend(arguments, "prefill", "disabled") == ("--tp", "8", "--cuda-graph-backend-prefill", "disabled")


def test_settings_join_the_config_that_is_there_and_never_overrule_it() -> None:
    arguments = ("--cuda-graph-config", '{"prefill": {"max_bs": 64}}', "--tp", "8")
    out = with_settings(arguments, {"prefill": {"backend": "breakable", "max_bs": 32}, "decode": {"backend": "full"}})
    assert json.loads(out[1]) == {"prefill": {"backend": "breakable", "max_bs": 64}, "decode": {"backend": "full"}}
    assert out[2:] == ("--tp", "8")


def test_no_settings_no_change() -> None:
    assert with_settings(("--tp", "8"), {"prefill": {}}) == ("--tp", "8")
