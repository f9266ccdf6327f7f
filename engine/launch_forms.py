"""The forms in which people have a launch, made into one :class:`~engine.launch.Launch`.

A JSON request holds a model, and any of an argument list, an argument object, a ``--cuda-graph-config`` object and a
whole shell line; the command line holds a model and an argument list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import InvalidLaunch
from engine.launch import Launch, ModelRef
from engine.launch_command import parse_command
from engine.options_text import option_named, option_value, without_option

MODEL_OPTIONS = ("--model-path", "--model")
CONFIG_OPTION = "--cuda-graph-config"

DEFAULT_RELEASE = "0.5.23"
DEFAULT_GPU = "H200"
DEFAULT_GPU_COUNT = 8
MAX_ARGUMENTS = 2000
MAX_ARGUMENT_CHARACTERS = 200_000


def launch_from_request(body: Mapping[str, Any]) -> Launch:
    """The launch that a request body of ``POST /v1/validations`` describes.

    Raises:
        InvalidLaunch: two parts contradict each other, or one has the wrong form; ``field`` says which.
    """
    engine = _object(body, "engine")
    hardware = _object(body, "hardware")
    environment = _environment(body.get("environment"))
    command = None
    if body.get("launch_command") is not None:
        command = parse_command(_text(body, "launch_command"), environment)
        environment = {**command.environment, **environment}
    arguments = _arguments(body.get("arguments"))
    if command is not None and arguments:
        raise InvalidLaunch(
            "launch_command and arguments are both given.",
            remedy="Put every option into one of the two.",
            field="arguments",
        )
    if command is not None:
        arguments = command.arguments
    named, arguments = model_in(arguments)
    if command is not None and command.model is not None:
        named = named or command.model
    arguments = _with_config(arguments, body.get("cuda_graph_config"))
    return Launch(
        model=_model(body.get("model"), named),
        engine=_string(engine, "engine.name", "name", "sglang"),
        release=_string(engine, "engine.version", "version", DEFAULT_RELEASE),
        gpu=_string(hardware, "hardware.gpu", "gpu", DEFAULT_GPU),
        gpu_count=_count(hardware),
        arguments=arguments,
        environment=environment,
        defaults=_defaults(body.get("defaults")),
    )


def launch_from_arguments(
    model: ModelRef,
    arguments: Sequence[str],
    *,
    release: str = DEFAULT_RELEASE,
    gpu: str = DEFAULT_GPU,
    gpu_count: int = DEFAULT_GPU_COUNT,
    environment: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Launch:
    """The launch of one model with an argument list, as the command line and the case files have it."""
    _, rest = model_in(_arguments(list(arguments)))
    return Launch(
        model=model,
        release=release,
        gpu=gpu,
        gpu_count=gpu_count,
        arguments=rest,
        environment=dict(environment or {}),
        defaults=_defaults(defaults),
    )


def arguments_from_object(given: Mapping[str, Any]) -> tuple[str, ...]:
    """An argument object as an argument list: ``{"tp_size": 8}`` becomes ``--tp-size 8``.

    True stands for a bare flag, False and null leave the option out, a list gives several values, an object becomes
    JSON. Names may be written with underscores or hyphens.
    """
    out: list[str] = []
    for name, value in given.items():
        if not isinstance(name, str) or not name.strip("-_"):
            raise InvalidLaunch(
                f"{name!r} is not an option's name.", remedy='Write names like "tp_size".', field="arguments"
            )
        option = "--" + name.lstrip("-").replace("_", "-")
        if value is None or value is False:
            continue
        out.append(option)
        if value is True:
            continue
        values = value if isinstance(value, list) else [value]
        out.extend(_word(item, f"arguments.{name}") for item in values)
    return tuple(out)


def _word(value: Any, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (Mapping, list)):
        return json.dumps(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidLaunch("An option's value must be text, a number or an object.", field=field)
    return str(value)


def _arguments(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, Mapping):
        words = arguments_from_object(given)
    elif isinstance(given, list):
        for index, word in enumerate(given):
            if not isinstance(word, str):
                raise InvalidLaunch(
                    f"Argument {index} is {type(word).__name__}, not text.",
                    remedy='Write each word as text, numbers too: ["--tp-size", "8"].',
                    field=f"arguments.{index}",
                )
        words = tuple(given)
    else:
        raise InvalidLaunch(
            "arguments must be a list of words or an object of options.",
            remedy='Write ["--tp-size", "8"] or {"tp_size": 8}.',
            field="arguments",
        )
    if len(words) > MAX_ARGUMENTS or sum(map(len, words)) > MAX_ARGUMENT_CHARACTERS:
        raise InvalidLaunch(
            f"The command line is too long: more than {MAX_ARGUMENTS} words or {MAX_ARGUMENT_CHARACTERS} characters.",
            remedy="Send one launch a request.",
            field="arguments",
        )
    if "\x00" in "".join(words):
        index = next(index for index, word in enumerate(words) if "\x00" in word)
        raise InvalidLaunch(
            "An argument holds a NUL character, which no command line can carry.", field=f"arguments.{index}"
        )
    return words


def model_in(arguments: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The model that the command line names, and the command line without it."""
    model = None
    rest = tuple(arguments)
    for option in MODEL_OPTIONS:
        if not option_named(rest, option):
            continue
        model = option_value(rest, option) or model
        rest = without_option(rest, option)
    return model, rest


def _with_config(arguments: tuple[str, ...], config: Any) -> tuple[str, ...]:
    if config is None:
        return arguments
    if option_named(arguments, CONFIG_OPTION):
        raise InvalidLaunch(
            f"cuda_graph_config is given, and {CONFIG_OPTION} stands on the command line too.",
            remedy="Keep one of them.",
            field="cuda_graph_config",
        )
    if isinstance(config, str):
        return (*arguments, CONFIG_OPTION, config)
    if isinstance(config, Mapping):
        return (*arguments, CONFIG_OPTION, json.dumps(config))
    raise InvalidLaunch(
        "cuda_graph_config must be an object, or its JSON as text.",
        remedy='Write {"prefill": {"backend": "breakable"}}.',
        field="cuda_graph_config",
    )


def _model(given: Any, named: str | None) -> ModelRef:
    if given is None:
        if named is None:
            raise InvalidLaunch(
                "No model is named.",
                remedy='Write "model": {"id": "org/name"}, or --model-path in the launch command.',
                field="model",
            )
        given = named
    if isinstance(given, str):
        return ModelRef(path=given) if given.startswith(("/", "./", "../")) else ModelRef(id=given)
    if not isinstance(given, Mapping):
        raise InvalidLaunch(
            "model must be an object or a model id.", remedy='Write "model": {"id": "org/name"}.', field="model"
        )
    ways = [key for key in ("id", "path", "config") if given.get(key) is not None]
    if len(ways) != 1:
        said = " and ".join(ways) if ways else "none of them"
        raise InvalidLaunch(
            f"model needs exactly one of id, path and config; it holds {said}.",
            remedy='Write "model": {"id": "org/name"}.',
            field="model",
        )
    for key in ("id", "path", "revision"):
        if given.get(key) is not None and not isinstance(given[key], str):
            raise InvalidLaunch(f"model.{key} must be text.", field=f"model.{key}")
    config = given.get("config")
    if config is not None and not isinstance(config, Mapping):
        raise InvalidLaunch("model.config must be the object that a config.json holds.", field="model.config")
    if given.get("revision") is not None and ways != ["id"]:
        raise InvalidLaunch("model.revision belongs to model.id.", remedy="Leave it out.", field="model.revision")
    return ModelRef(id=given.get("id"), revision=given.get("revision"), path=given.get("path"), config=config)


def _object(body: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = body.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidLaunch(f"{field} must be an object.", field=field)
    return value


def _text(body: Mapping[str, Any], field: str) -> str:
    value = body[field]
    if not isinstance(value, str):
        raise InvalidLaunch(f"{field} must be text.", field=field)
    if len(value) > MAX_ARGUMENT_CHARACTERS:
        raise InvalidLaunch(f"{field} is longer than {MAX_ARGUMENT_CHARACTERS} characters.", field=field)
    return value


def _string(part: Mapping[str, Any], field: str, key: str, default: str) -> str:
    value = part.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise InvalidLaunch(f"{field} must be text.", field=field)
    return value


def _count(hardware: Mapping[str, Any]) -> int:
    value = hardware.get("count")
    if value is None:
        return DEFAULT_GPU_COUNT
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise InvalidLaunch(
            "hardware.count must be a whole number of GPUs, 1 to 100000.", remedy="Write 8.", field="hardware.count"
        )
    return value


def _environment(given: Any) -> dict[str, str]:
    out: dict[str, str] = {}
    if given is None:
        return out
    if not isinstance(given, Mapping):
        raise InvalidLaunch("environment must be an object of names and texts.", field="environment")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidLaunch(
                f"The environment variable {name} must be text.",
                remedy='Write "1", not true.',
                field=f"environment.{name}",
            )
        out[name] = str(value)
    return out


def _defaults(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidLaunch(
            "defaults must be an object of the shape of cuda_graph_config.",
            remedy='Write {"prefill": {"backend": "full"}}.',
            field="defaults",
        )
    return given
