"""Release numbers: known, newer, older, nonsense; options that went away."""

from __future__ import annotations

import pytest

from engine.errors import UnknownRelease
from engine.sglang.releases import known_releases, newest_release, release_named
from engine.sglang.retired import retired_in


def test_a_known_release_answers_for_itself() -> None:
    release = release_named("0.5.23")
    assert (release.text, release.version, release.note) == ("0.5.23", (0, 5, 23), None)
    assert release_named("v0.5.23").text == "0.5.23"


@pytest.mark.parametrize("asked", ["0.5.24", "0.6.0", "1.0.0", "0.5.24rc1"])
def test_a_newer_release_is_answered_as_the_newest_known_and_says_so(asked: str) -> None:
    release = release_named(asked)
    assert release.text == newest_release().text == known_releases()[-1]
    assert release.asked == asked
    assert release.note is not None
    assert asked in release.note


def test_a_post_release_is_answered_as_its_release_and_says_so() -> None:
    release = release_named("0.5.23.post1")
    assert release.text == "0.5.23"
    assert release.note == "Release 0.5.23.post1 is answered as 0.5.23."


@pytest.mark.parametrize("asked", ["0.5.13", "0.4.9", "0.0.1", "latest", "", "0.5", "0.5.x", "5" * 50, "0.5.23; rm"])
def test_what_is_not_covered_names_what_is(asked: str) -> None:
    with pytest.raises(UnknownRelease) as caught:
        release_named(asked)
    assert "0.5.23" in caught.value.remedy
    assert caught.value.field == "engine.version"


def test_every_option_has_a_default() -> None:
    for text in known_releases():
        release = release_named(text)
        assert {o.dest for o in release.options.options} - set(release.defaults) == {"help", "model_path"}


def test_a_removed_option_names_its_replacement() -> None:
    release = release_named("0.5.23")
    words = [
        "--cuda-graph-max-bs",
        "8",
        "--disable-piecewise-cuda-graph",
        "--enforce-piecewise-cuda-graph",
        "--tp",
        "2",
    ]
    found = retired_in(words, release)
    assert [(r.option, r.last, r.instead) for r in found] == [
        ("--cuda-graph-max-bs", "0.5.19", "--cuda-graph-max-bs-decode"),
        ("--disable-piecewise-cuda-graph", "0.5.19", "--cuda-graph-backend-prefill=disabled"),
        ("--enforce-piecewise-cuda-graph", "0.5.19", None),  # its replacement, tc_piecewise, is gone too
    ]
