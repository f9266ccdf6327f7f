"""The standard library's own parser over a release's options: the reference for the table-driven one."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.sglang import argument_types
from engine.sglang.graph_config import parse_backend, parse_config
from engine.sglang.releases import release_named

RELEASES = Path(argument_types.__file__).parent / "releases"


class _Store(argparse.Action):
    """The engine's retired spellings: they store something else than what is given."""

    def __init__(self, *args: Any, stored: Any = None, use_value: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored, self.use_value = stored, use_value

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: str | None = None) -> None:
        setattr(namespace, self.dest, values if self.use_value else self.stored)


class _Gone(argparse.Action):
    """The engine's retired options without a translation: they stop the launch, or do nothing."""

    def __init__(self, *args: Any, says: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.says = says

    def __call__(self, parser: Any, _namespace: Any, _values: Any, _option: str | None = None) -> None:
        if self.says is not None:
            parser.error(self.says)


class _LoraPaths(argparse.Action):
    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: str | None = None) -> None:
        paths = []
        for word in (value.strip() for value in values):
            path = json.loads(word) if word.startswith("{") and word.endswith("}") else word
            if isinstance(path, dict) and not {"lora_path", "lora_name"} <= path.keys():
                raise AssertionError
            paths.append(path)
        setattr(namespace, self.dest, paths)


def _typed(name: str, release: str) -> Callable[[str], Any]:
    language = release_named(release).graph
    functions: dict[str, Callable[[str], Any]] = {
        **argument_types.TYPES,
        "parse_cuda_graph_config_arg": lambda text: parse_config(text, language),
        "parse_cuda_graph_backend_arg": lambda text: parse_backend(text, language),
    }
    function = functions[name]

    def convert(text: str) -> Any:
        try:
            return function(text)
        except argument_types.BadValue as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    convert.__name__ = name.removeprefix("json.")
    return convert


def reference(release: str) -> argparse.ArgumentParser:
    """An ``argparse.ArgumentParser`` with every option of the release."""
    rows = json.loads((RELEASES / release / "options.json").read_text(encoding="utf-8"))["options"]
    parser = argparse.ArgumentParser(prog="sglang serve", argument_default=argparse.SUPPRESS)
    for row in rows:
        strings, action = row["strings"], row["action"]
        kwargs: dict[str, Any] = {"dest": row["dest"]}
        if action == "HelpAction":
            continue
        if action == "StoreTrueAction":
            parser.add_argument(*strings, action="store_true", **kwargs)
            continue
        if action == "BooleanOptionalAction":
            positive = [string for string in strings if not string.startswith("--no-")]
            parser.add_argument(*positive, action=argparse.BooleanOptionalAction, **kwargs)
            continue
        for key in ("nargs", "choices"):
            if key in row:
                kwargs[key] = row[key]
        if action == "StoreAction":
            if "const" in row:
                kwargs["const"] = row["const"]
            parser.add_argument(*strings, type=_typed(row.get("type", "str"), release), **kwargs)
        elif action == "LoRAPathAction":
            parser.add_argument(*strings, action=_LoraPaths, type=str, **kwargs)
        elif action == "DeprecatedStoreTrueAction":
            parser.add_argument(*strings, action=_Store, stored=True, **kwargs)
        elif action == "DeprecatedStoreConstAction":
            parser.add_argument(*strings, action=_Store, stored=row["const_value"], **kwargs)
        elif action == "DeprecatedAction":
            parser.add_argument(*strings, action=_Gone, says=row.get("error_message"), **kwargs)
        elif action == "DeprecatedAliasStoreAction":
            parser.add_argument(
                *strings, action=_Store, use_value=True, type=_typed(row.get("type", "str"), release), **kwargs
            )
    return parser


def answer(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
    """The values given, or None and the last line of the error (the exception's name where an action raises)."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            return vars(parser.parse_args(list(words))), ""
    except SystemExit:
        lines = errors.getvalue().strip().splitlines()
        return None, lines[-1] if lines else ""
    except (json.JSONDecodeError, AssertionError) as error:  # raised by an action: the engine ends with a traceback
        return None, type(error).__name__
