"""Whatever an object holds in the place of anything, its launches are found or not, and no error escapes."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from api_tests.admission.test_samples import SAMPLES, read
from engine.errors import QuestionError
from engine.manifests import FoundLaunch, Silence, launch_of, launches_in_documents

REPLACEMENTS: tuple[Any, ...] = (None, 7, True, "$(X", "", [], {}, [None], {"": None}, ["a", 3], "\x00", 1.5)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node below this one."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in children:
        yield (*path, key)
        yield from places(value, (*path, key))


def damaged(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object with each of its nodes, one at a time, replaced by something else."""
    for number, path in enumerate(places(document)):
        for replacement in (REPLACEMENTS[number % 12], REPLACEMENTS[(number * 5 + 3) % 12]):
            other = copy.deepcopy(document)
            node: Any = other
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = copy.deepcopy(replacement)
            yield other


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_no_damage_is_an_error(sample: Any) -> None:
    objects = [document for document in read(sample)[1] if document]
    seen = 0
    for document in objects:
        for other in damaged(document):
            for found in launches_in_documents([other]):
                assert isinstance(found, FoundLaunch)
                with contextlib.suppress(QuestionError):
                    launch_of(found, Silence())
                seen += 1
    holds = any(True for document in objects for _ in launches_in_documents([document]))
    assert (seen > 20) is holds
