"""The launch of a command line: which model, which release, which GPUs, which engine arguments."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import InvalidLaunch, ModelError, ModelNotFound
from engine.launch import Launch, ModelRef
from engine.launch_forms import DEFAULT_GPU, DEFAULT_GPU_COUNT, DEFAULT_RELEASE, launch_from_arguments, model_in
from engine.models.facts import ModelFacts
from service.cli.config_files import with_config_file
from service.cli.problems import UsageError

MOST_GPUS = 100_000


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="org/name, ./folder or path/to/config.json")
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit of the hub repository")
    parser.add_argument("--config-json", metavar="JSON", help="the model's config.json itself; - reads standard input")


def add_launch(parser: argparse.ArgumentParser, *, release: bool = True) -> None:
    """The arguments that describe a launch, ``--release`` among them or not; the engine's own stand behind ``--``."""
    add_model(parser)
    if release:
        parser.add_argument("--release", default=DEFAULT_RELEASE, help="SGLang release (default %(default)s)")
    parser.add_argument("--gpu", default=DEFAULT_GPU, help="GPU name, see graphgate gpus (default %(default)s)")
    parser.add_argument(
        "--gpu-count",
        type=_count,
        default=DEFAULT_GPU_COUNT,
        metavar="N",
        help="GPUs on the node (default %(default)s)",
    )
    parser.add_argument(
        "--defaults", metavar="JSON", help='what the platform would like, unlocked: {"prefill": {"backend": "full"}}'
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="the launch's environment; may be repeated"
    )
    parser.set_defaults(takes_engine_arguments=True)


def launch_of(asked: argparse.Namespace) -> Launch:
    """The launch that the arguments describe.

    Raises:
        QuestionError: one of them has the wrong form, or the model is named twice or not at all.
    """
    words, environment = asked.engine_arguments or [], environment_of(asked.env)
    positional = None
    if words and not words[0].startswith("-"):
        import shlex  # only where a whole command may stand there

        from engine.launch_command import find_command

        command = find_command(shlex.join(words), environment, field="arguments")
        if command is not None:
            words, positional = list(command.arguments), command.model
            environment = {**command.environment, **environment}
    words = with_config_file(words, asked.release)
    named, _ = model_in(words)
    return launch_from_arguments(
        model_ref(asked, named or positional),
        words,
        release=asked.release,
        gpu=asked.gpu,
        gpu_count=asked.gpu_count,
        environment=environment,
        defaults=defaults_of(asked.defaults),
    )


def model_ref(asked: argparse.Namespace, named: str | None = None) -> ModelRef:
    """The model that the arguments name; ``named`` is the one that stands among the engine's own arguments."""
    given = asked.model if asked.model is not None else named
    if asked.model is not None and named is not None and named != asked.model:
        raise UsageError(
            f"Two models are named: {asked.model[:80]!r}, and {named[:80]!r} behind --.", remedy="Keep one of them."
        )
    if asked.config_json is not None:
        if given is not None:
            raise UsageError("MODEL and --config-json are both given.", remedy="Keep one of them.")
        _no_revision(asked, "--config-json")
        return ModelRef(config=_config(asked.config_json))
    if given is None:
        raise UsageError(
            "No model is named.", remedy="Write org/name, ./folder or path/to/config.json first, or --config-json JSON."
        )
    if is_path(given):
        _no_revision(asked, "a local path")
        return ModelRef(path=given)
    return ModelRef(id=given, revision=asked.revision)


def is_path(model: str) -> bool:
    """Whether MODEL means a place on this machine.

    >>> is_path("./model"), is_path("config.json"), is_path("org/name")
    (True, True, False)
    """
    return model.startswith(("./", "../", "/")) or model in (".", "..") or model.endswith(".json")


def facts_of_ref(ref: ModelRef) -> ModelFacts:
    """The facts of a model. The person at the command line owns the machine: any local path may be read.

    Raises:
        ModelError: the model cannot be resolved.
    """
    if ref.path is not None:
        from engine.models.local import read_local  # only where it is a path

        return read_local(Path(ref.path))
    from engine.models.resolver import ModelResolver  # only where an id or a config has to be looked at
    from engine.models.settings import ModelSettings

    try:
        return ModelResolver(ModelSettings.from_environment(os.environ)).resolve(ref)
    except ModelError as error:
        _hint_at_folder(error, ref)
        raise


def json_object(text: str, option: str) -> Mapping[str, Any]:
    """The object in a JSON text.

    Raises:
        InvalidLaunch: it is none, with the place of the mistake.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidLaunch(
            f"{option} is not JSON: column {error.colno}: {error.msg}.",
            remedy="Put it in single quotes, so that the shell keeps the double ones.",
        ) from None
    except (RecursionError, ValueError):
        raise InvalidLaunch(f"{option} cannot be read as JSON.", remedy="Check its nesting and its numbers.") from None
    if not isinstance(value, dict):
        raise InvalidLaunch(f"{option} must be a JSON object.", remedy='Write {"prefill": {"backend": "full"}}.')
    return value


def defaults_of(text: str | None) -> Mapping[str, Any] | None:
    """The platform's defaults, from ``--defaults``."""
    return None if text is None else json_object(text, "--defaults")


def _config(text: str) -> Mapping[str, Any]:
    from engine.models.parsing import MAX_CONFIG_BYTES, read_config  # a config may hold bare Infinity

    return read_config(sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1) if text == "-" else text)


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= MOST_GPUS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MOST_GPUS}")


def environment_of(given: Sequence[str]) -> dict[str, str]:
    """The assignments of ``--env``.

    Raises:
        UsageError: one is none.
    """
    out: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--env {word[:80]!r} is no assignment.", remedy="Write --env NAME=VALUE.")
        out[name] = value
    return out


def _no_revision(asked: argparse.Namespace, other: str) -> None:
    if asked.revision is not None:
        raise UsageError(f"--revision belongs to a hub id, not to {other}.", remedy="Leave it out.")


def _hint_at_folder(error: ModelError, ref: ModelRef) -> None:
    if ref.id and not isinstance(error, ModelNotFound) and "\x00" in ref.id:
        return
    try:
        exists = bool(ref.id) and Path(ref.id or "").exists()
    except (OSError, ValueError):
        exists = False
    if exists:
        error.remedy = f"Here lies a file or folder of that name: write ./{ref.id} to mean it. {error.remedy}".strip()
