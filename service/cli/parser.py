"""The command line of ``graphgate`` itself. What stands behind ``--`` is the engine's and is handed on untouched."""

from __future__ import annotations

import argparse
import difflib
import importlib
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from engine.version import VERSION
from service.cli.problems import UsageError
from service.cli.words import width, wrapped

COMMANDS = {
    "check": "the verdict on a launch, a manifest's launches, or a file of launches",
    "compare": "what an upgrade of the engine changes for a launch",
    "capture": "capture a launch's graphs on this machine and report how far replay is from eager",
    "serve": "the HTTP API with a capture worker",
    "worker": "the capture worker as its own process",
    "reconcile": "take back what dead workers held, send what a broker lost, once",
    "keys": "API keys: create, list, revoke",
    "rules": "the guards: what each looks for, since when, on whose evidence",
    "releases": "the engine releases that are covered",
    "gpus": "the GPUs that are known",
    "models": "the facts of a model",
}
"""Every command, with the line that describes it. ``commands/NAME.py`` holds its arguments and what it does."""


class Command(Protocol):
    """What a module of ``commands/`` offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, asked: argparse.Namespace) -> int: ...


def _formatter(prog: str) -> argparse.HelpFormatter:
    """A formatter that knows its width, so that argparse does not import what would measure it."""
    return argparse.RawDescriptionHelpFormatter(prog, width=width())


def _description(text: str) -> str:
    """The paragraphs wrapped to the terminal; indented ones stay as they are."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else "\n".join(wrapped(" ".join(p.split()))) for p in paragraphs)


class _Parser(argparse.ArgumentParser):
    """Reports a mistake as an error of the question instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(_sentence(message), remedy=f"See {self.prog} --help.")


def parse(argv: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """The command that the words ask for, and its arguments; ``engine_arguments`` is what stands behind ``--``.

    Raises:
        UsageError: the words cannot be understood.
        SystemExit: after ``--help`` or ``--version``.
    """
    own, engine = _split(argv)
    if not own or own[0].startswith("-"):
        _overview().parse_args(own or ["--help"])
    name, rest = own[0], own[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"There is no command {name[:60]!r}.", remedy=f"{hint}Commands: {', '.join(COMMANDS)}.")
    command = cast("Command", importlib.import_module(f"service.cli.commands.{name}"))
    parser = _Parser(
        prog=f"graphgate {name}",
        description=_description(command.__doc__ or ""),
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    asked, unknown = parser.parse_known_args(rest)
    takes_engine = bool(parser.get_default("takes_engine_arguments"))
    if unknown:
        raise _unknown(parser, unknown, takes_engine=takes_engine)
    if engine is not None and not takes_engine:
        raise UsageError(f"graphgate {name} takes no engine arguments.", remedy="Leave out -- and what follows it.")
    asked.engine_arguments = engine
    return command, asked


def _split(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    words = list(argv)
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _overview() -> argparse.ArgumentParser:
    lines = [f"  {name:<10} {what}" for name, what in COMMANDS.items()]
    parser = _Parser(
        prog="graphgate",
        usage="graphgate COMMAND ...",
        description="Preflight checks for the CUDA-graph configuration of LLM serving engines.",
        epilog="commands:\n" + "\n".join(lines) + "\n\ngraphgate COMMAND --help says more.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"graphgate {VERSION}")
    return parser


def _unknown(parser: argparse.ArgumentParser, unknown: Sequence[str], *, takes_engine: bool) -> UsageError:
    first = next((word for word in unknown if word.startswith("-")), unknown[0])
    if not first.startswith("-"):
        return UsageError(f"{first[:80]!r} is one word too many.", remedy=f"See {parser.prog} --help.")
    name = first.partition("=")[0]
    own = [option for action in parser._actions for option in action.option_strings]
    near = difflib.get_close_matches(name, own, n=1, cutoff=0.75)
    hints = [f"Did you mean {near[0]}?"] if near else []
    if takes_engine:
        hints.append(f"The engine's own arguments go behind --: {parser.prog} MODEL -- {name} ...")
    else:
        hints.append(f"See {parser.prog} --help.")
    return UsageError(f"{parser.prog} has no option {name[:80]}.", remedy=" ".join(hints))


def _sentence(message: str) -> str:
    """argparse's words as a sentence."""
    message = message.removeprefix("argument ")
    return message if message.endswith((".", "!")) else f"{message}."
