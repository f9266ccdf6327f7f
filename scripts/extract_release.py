"""Read one SGLang release's command line and tables, and write them as data.

Run it with a Python environment in which that release of SGLang can be imported. On a machine without a GPU a module
``fake_gpu`` on the path, imported first, may make torch answer as if there were one. ::

    python scripts/extract_release.py 0.5.23 engine/sglang/releases

writes ``releases/0.5.23/options.json`` (every command-line option as argparse holds it, and the default of every
argument) and ``releases/0.5.23/tables.json`` (graph phases, backends and keys; choice lists; environment variables).
Only facts are written: no help texts, no code.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

with contextlib.suppress(ImportError):  # lets the release be imported on a machine without a GPU, where provided
    import fake_gpu  # type: ignore[import-not-found]  # noqa: F401  imported for its effect; optional

ENVIRONMENT_MODULE = "sglang.srt.environ"
GRAPH_MODULE = "sglang.srt.model_executor.cuda_graph_config"


def plain(value: Any) -> Any:
    """The value as JSON can hold it; what it cannot hold, as its text."""
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(v) for v in value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return str(value)


def type_name(function: Any) -> str | None:
    """The name that argparse prints for a type function (``json.loads`` is told apart by its module)."""
    if function is None:
        return None
    name = getattr(function, "__name__", None) or repr(function)
    return f"json.{name}" if getattr(function, "__module__", "") == "json" else str(name)


def options(parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """Every option in the parser's own order."""
    rows = []
    for action in parser._actions:
        if not action.option_strings:
            raise SystemExit(f"a positional argument is not expected: {action.dest}")
        row = {
            "strings": list(action.option_strings),
            "dest": action.dest,
            "action": type(action).__name__.lstrip("_"),
            "nargs": action.nargs,
            "const": plain(action.const),
            "type": type_name(action.type),
            "choices": [plain(c) for c in action.choices] if action.choices else None,
            "required": action.required,
        }
        for extra in ("const_value", "new_flag", "error_message"):
            if getattr(action, extra, None) is not None:
                row[extra] = plain(getattr(action, extra))
        rows.append({k: v for k, v in row.items() if v is not None and v is not False})
    return rows


def argument_defaults(parser: argparse.ArgumentParser, record: Any) -> dict[str, Any]:
    """The value of every argument where nothing is given, whether it has an option or not."""
    defaults: dict[str, Any] = {}
    try:
        import msgspec  # type: ignore[import-not-found]  # comes with the release that is read

        if issubclass(record, msgspec.Struct):
            for field in msgspec.structs.fields(record):
                if field.default is not msgspec.NODEFAULT:
                    defaults[field.name] = plain(field.default)
                elif field.default_factory is not msgspec.NODEFAULT:
                    defaults[field.name] = plain(field.default_factory())
    except ImportError:
        pass
    import dataclasses

    if dataclasses.is_dataclass(record):
        for entry in dataclasses.fields(record):
            if entry.default is not dataclasses.MISSING:
                defaults[entry.name] = plain(entry.default)
            elif entry.default_factory is not dataclasses.MISSING:
                defaults[entry.name] = plain(entry.default_factory())
    namespace = parser.parse_args(["--model-path", "MODEL"])
    defaults.update({name: plain(value) for name, value in vars(namespace).items() if name != "model_path"})
    return dict(sorted(defaults.items()))


def environment() -> dict[str, dict[str, Any]]:
    """Every environment variable that the release declares: how it is read, and its default."""
    module = importlib.import_module(ENVIRONMENT_MODULE)
    rows: dict[str, dict[str, Any]] = {}
    for name in dir(type(module.envs)):
        field = vars(type(module.envs)).get(name)
        if field is None or not hasattr(field, "default"):
            continue
        default = field.default
        if callable(default):
            # A default computed from the machine (ROCm).
            with contextlib.suppress(Exception):
                default = default()
        if isinstance(default, str):  # cache folders, without this machine's home
            default = default.replace(os.path.expanduser("~"), "~")  # noqa: PTH111  no Path: a prefix of text
        row = {"kind": type(field).__name__, "default": plain(default)}
        if getattr(field, "deprecated_name", None):
            row["alias"] = field.deprecated_name
        rows[name] = row
    return rows


def choices() -> dict[str, Any]:
    """The module-level choice lists that the resolution reads by name."""
    found: dict[str, Any] = {}
    for name in ("sglang.srt.server_args", "sglang.srt.arg_groups.choices"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            for key, value in vars(module).items():
                if key.isupper() and not key.startswith("_") and isinstance(value, list | tuple | set | frozenset):
                    found[key] = plain(value)
    return dict(sorted(found.items()))


def graph() -> dict[str, Any]:
    """Phases, backends and keys of the graph configuration, and the defaults on CUDA."""
    module = importlib.import_module(GRAPH_MODULE)
    config = module.default_cuda_graph_config()
    retired = {}
    for backend in ("full", "breakable", "tc_piecewise", "disabled"):
        try:
            module.parse_cuda_graph_config_arg(json.dumps({"decode": {"backend": backend}}))
        except argparse.ArgumentTypeError as refusal:
            retired[backend] = str(refusal)
    return {
        "phases": list(module.Phase.ALL),
        "backends": {phase: list(module.ALLOWED_BACKENDS_PER_PHASE[phase]) for phase in module.Phase.ALL},
        "keys": {phase: list(module.ALLOWED_KEYS_PER_PHASE[phase]) for phase in module.Phase.ALL}
        if isinstance(module.ALLOWED_KEYS_PER_PHASE, dict)
        else {phase: list(module.ALLOWED_KEYS_PER_PHASE) for phase in module.Phase.ALL},
        "retired": retired,
        "defaults": {
            phase: {key: plain(value) for key, value in vars(getattr(config, phase)).items()}
            for phase in module.Phase.ALL
        },
    }


class Ask:
    """An argument record that answers what a ladder asks: padding on, this speculative algorithm."""

    def __init__(self, algorithm: str | None) -> None:
        self.disable_cuda_graph_padding = False
        self.speculative_algorithm = algorithm


LARGEST = 1 << 16


def ladders(record: Any) -> dict[str, list[list[int | None]]]:
    """The capture-size ladders as segments (first, last, step); the last segment is open."""
    found: dict[str, list[list[int | None]]] = {}
    with contextlib.suppress(ImportError):
        hook = importlib.import_module("sglang.srt.arg_groups.cuda_graph_hook")
        if hasattr(hook, "generate_decode_cuda_graph_batch_sizes"):
            found["prefill"] = segments(hook.generate_prefill_cuda_graph_batch_sizes(LARGEST))
            found["decode"] = segments(hook.generate_decode_cuda_graph_batch_sizes(Ask(None), LARGEST))
            found["speculative"] = segments(hook.generate_decode_cuda_graph_batch_sizes(Ask("EAGLE"), LARGEST))
            return found
    for name in dir(record):  # older releases: methods of the argument record
        method = getattr(record, name)
        if "prefill_cuda_graph_batch_sizes" in name or "piecewise_cuda_graph_num_tokens" in name:
            found["prefill"] = segments(method(Ask(None), LARGEST))
        elif "decode_cuda_graph_batch_sizes" in name or name == "_generate_cuda_graph_batch_sizes":
            found["decode"] = segments(method(Ask(None), LARGEST))
            found["speculative"] = segments(method(Ask("EAGLE"), LARGEST))
    return found


def segments(sizes: list[int]) -> list[list[int | None]]:
    """Runs of equal distance."""
    out: list[list[int | None]] = []
    at = 0
    while at < len(sizes):
        if at + 1 == len(sizes):
            if sizes[at] != LARGEST:  # the largest size asked for is appended by the engine; it is no rung
                out.append([sizes[at], sizes[at], 1])
            break
        step = sizes[at + 1] - sizes[at]
        end = at + 1
        while end + 1 < len(sizes) and sizes[end + 1] - sizes[end] == step:
            end += 1
        out.append([sizes[at], sizes[end], step])
        at = end + 1
    out[-1][1] = None
    return out


def write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path, file=sys.stderr)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("version")
    reader.add_argument("folder", type=Path)
    asked = reader.parse_args()
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    made_by = f"python scripts/extract_release.py {asked.version} engine/sglang/releases"
    folder = asked.folder / asked.version
    write(
        folder / "options.json",
        {"made_by": made_by, "options": options(parser), "defaults": argument_defaults(parser, ServerArgs)},
    )
    write(
        folder / "tables.json",
        {
            "made_by": made_by,
            "graph": graph(),
            "ladders": ladders(ServerArgs),
            "choices": choices(),
            "environment": environment(),
        },
    )


if __name__ == "__main__":
    main()
