"""The launches of manifests, checked: ``graphgate check -f``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.errors import InvalidLaunch, QuestionError
from engine.manifests import MAX_CHARACTERS, FoundLaunch, Silence, launch_of, launches_in
from engine.preflight import check_facts
from service.cli.answers import Answer
from service.cli.gate import gate
from service.cli.launches import defaults_of, environment_of, facts_of_ref
from service.cli.problems import UsageError


def answers_in(asked: argparse.Namespace) -> list[Answer]:
    """One answer for each launch of each file, in order.

    Raises:
        QuestionError: a file cannot be read, or no file holds a launch.
    """
    answers = [answer for file in asked.manifest for answer in _in_file(file, asked)]
    if not answers:
        raise InvalidLaunch(
            f"No SGLang launch was found in {', '.join(asked.manifest)[:200]}.",
            remedy="Looked for are containers that run sglang.launch_server, sglang serve or dynamo.sglang.",
        )
    return answers


def _in_file(file: str, asked: argparse.Namespace) -> Iterator[Answer]:
    name = "<stdin>" if file == "-" else file
    for found in launches_in(_text(file), name=name):
        try:
            yield _checked(found, name, asked)
        except QuestionError as error:
            yield Answer(error=error, file=name, owner=found.owner, place=found.path)


def _checked(found: FoundLaunch, file: str, asked: argparse.Namespace) -> Answer:
    silence = Silence(
        release=asked.release,
        gpu=asked.gpu,
        gpu_count=asked.gpu_count,
        environment=environment_of(asked.env),
        defaults=defaults_of(asked.defaults),
    )
    launch = launch_of(found, silence, release=asked.release if asked.release_named else None)
    verdict = check_facts(launch, facts_of_ref(launch.model), gate()).verdict
    return Answer(launch=launch, verdict=verdict, file=file, owner=found.owner, place=found.path)


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(MAX_CHARACTERS + 1)
        with Path(file).open(encoding="utf-8") as stream:
            return stream.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise UsageError(f"{file[:200]} is not UTF-8 text.", remedy="Give a YAML or JSON manifest.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{file[:200]} cannot be read: {reason}.", remedy="Check the path after -f.") from None
