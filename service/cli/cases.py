"""Many launches at once: one JSON line in, one JSON line out, in order, in constant memory.

In: ``{"id", "engine", "version", "gpu", "model", "argv"}``, where ``model`` is a file (or a folder with a config.json)
below the models' folder; ``env``, ``gpu_count`` and ``defaults`` may ride along, and other keys are ignored. Out:
``{"id", "verdict", "prediction", "findings"}``, or ``{"id", "error", "code"}`` in its place.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from engine.errors import InvalidLaunch, ModelError, PathNotAllowed, QuestionError
from engine.launch import ModelRef
from engine.launch_forms import DEFAULT_GPU, DEFAULT_GPU_COUNT, DEFAULT_RELEASE, launch_from_arguments
from engine.models.facts import ModelFacts
from engine.models.local import read_below
from engine.preflight import check_facts
from service.cli.gate import gate
from service.cli.problems import UsageError

_encoded = json.JSONEncoder(check_circular=False).encode
"""An answer is a tree, so nobody has to look for circles in it."""

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes; a longer line is passed over and answered with an error."""

_BYTE_ORDER_MARK = "\ufeff"

MODELS_KEPT = 256
"""Models whose facts are kept: a file of cases asks for the same few again and again."""


def answer_file(cases: str, models: Path) -> int:
    """Answer every line of the file (``-``: of standard input) on standard output.

    Returns the exit code: 0 where every line was answered, else 2.

    Raises:
        UsageError: the file or the folder cannot be read.
    """
    if not models.is_dir():
        raise UsageError(
            f"{str(models)[:200]} is no folder.", remedy="Give --models-dir the folder that holds the models."
        )
    book = Models(models)
    answered = True
    with _opened(cases) as source:
        live = cases == "-"
        out = sys.stdout
        for line in lines_of(source):
            answer = answer_line(line, book)
            answered = answered and "verdict" in answer
            out.write(_encoded(answer) + "\n")
            if live:  # whoever writes line by line waits for each answer
                out.flush()
    return 0 if answered else 2


def lines_of(source: IO[bytes]) -> Iterator[bytes | None]:
    """Each line without its end; None for one that is longer than :data:`LONGEST_LINE`, which is not kept."""
    while line := source.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (more := source.readline(LONGEST_LINE)) and not more.endswith(b"\n"):
                pass
            yield None
        else:
            yield line.rstrip(b"\r\n")


def answer_line(line: bytes | None, models: Models) -> dict[str, Any]:
    """The answer to one line; whatever is wrong with it becomes an answer too."""
    case_id: Any = None
    try:
        case = _case(line)
        case_id = case.get("id")
        return {"id": case_id, **_answer(case, models)}
    except QuestionError as error:
        return {"id": case_id, "error": str(error), "code": error.slug}
    except Exception as error:  # a mistake of ours in one launch must not take the answers of the others
        said = f"graphgate failed on this launch: {type(error).__name__}: {error}"
        return {"id": case_id, "error": said[:500], "code": "internal"}


class Models:
    """The facts of the models below a folder, read once each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: OrderedDict[str, ModelFacts] = OrderedDict()

    def facts(self, name: str) -> ModelFacts:
        """The facts of the model in that file.

        Raises:
            ModelError: it is outside the folder, is not there, or is no config.
        """
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(name)
            if len(self._known) > MODELS_KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(name)
        return known

    def _read(self, name: str) -> ModelFacts:
        try:
            name.encode()  # a lone surrogate, which JSON can carry and no file system can
        except UnicodeEncodeError:
            raise PathNotAllowed(
                "The model's name cannot be a path: it is no valid text.", remedy="Mend the name.", field="model"
            ) from None
        try:
            return read_below(name, [self._folder])
        except ModelError as error:
            if error.field == "model.path":
                error.field, error.remedy = "model", "Name a file below the folder of --models-dir."
            raise


def _case(line: bytes | None) -> Mapping[str, Any]:
    if line is None:
        raise InvalidLaunch(f"The line is longer than {LONGEST_LINE:,} bytes.", remedy="Send one launch a line.")
    if not line.strip():
        raise InvalidLaunch("The line is empty.", remedy="Send one JSON object a line.")
    try:
        case = json.loads(line.decode().removeprefix(_BYTE_ORDER_MARK))
    except json.JSONDecodeError as error:
        raise InvalidLaunch(f"The line is not JSON: column {error.colno}: {error.msg}.") from None
    except UnicodeDecodeError:
        raise InvalidLaunch("The line is not UTF-8 text.") from None
    except (RecursionError, ValueError):
        raise InvalidLaunch("The line cannot be read as JSON: nested too deep, or a number too long.") from None
    if not isinstance(case, dict):
        raise InvalidLaunch("The line is not a JSON object.", remedy='Write {"id": ..., "model": ..., "argv": [...]}.')
    return case


def _answer(case: Mapping[str, Any], models: Models) -> dict[str, Any]:
    name = _text(case, "model", None)
    argv = case.get("argv")
    if argv is not None and not isinstance(argv, list):
        raise InvalidLaunch("argv must be a list of words.", remedy='Write ["--tp-size", "8"].', field="argv")
    engine = _text(case, "engine", "sglang")
    facts = models.facts(name)
    launch = launch_from_arguments(
        ModelRef(path=name),
        argv or (),
        release=_text(case, "version", DEFAULT_RELEASE),
        gpu=_text(case, "gpu", DEFAULT_GPU),
        gpu_count=_count(case),
        environment=_environment(case.get("env")),
        defaults=case.get("defaults"),
    )
    if engine != launch.engine:
        launch = dataclasses.replace(launch, engine=engine)
    verdict = check_facts(launch, facts, gate()).verdict
    return {
        "verdict": verdict.verdict,
        "prediction": verdict.prediction.to_dict(),
        "findings": [finding.to_dict() for finding in verdict.findings],
    }


def _text(case: Mapping[str, Any], key: str, default: str | None) -> str:
    value = case.get(key)
    if value is None:
        value = default
    if not isinstance(value, str) or not value:
        raise InvalidLaunch(f"{key} must be text.", remedy=f"Give the line a {key}.", field=key)
    return value


def _count(case: Mapping[str, Any]) -> int:
    value = case.get("gpu_count")
    if value is None:
        return DEFAULT_GPU_COUNT
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise InvalidLaunch("gpu_count must be a whole number from 1 to 100000.", field="gpu_count")
    return value


def _environment(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(
        isinstance(value, (str, int)) and not isinstance(value, bool) for value in given.values()
    ):
        raise InvalidLaunch("env must be an object of names and texts.", remedy='Write {"NAME": "1"}.', field="env")
    return {name: str(value) for name, value in given.items()}


def _opened(cases: str) -> IO[bytes]:
    if cases == "-":
        return sys.stdin.buffer
    try:
        return Path(cases).open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{cases[:200]} cannot be read: {reason}.", remedy="Check the path after --cases.") from None
