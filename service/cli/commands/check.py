"""The verdict on a launch, before anything is launched.

  graphgate check MODEL [options] -- SGLANG-ARGUMENTS
  graphgate check -f manifest.yaml
  graphgate check --cases launches.jsonl --models-dir DIR

MODEL is a hub id (org/name), or a local folder or config.json. It is taken for a path if it begins
with ./, ../ or / or ends in .json, and for an id otherwise. Behind -- stand the engine's arguments, or
a whole command: python -m sglang.launch_server --model-path org/name ...

-f finds the SGLang launches in Kubernetes manifests and compose files; the release is that of the image's
tag, the GPU that of the node selection, where they name one. --cases answers one JSON line
for each line, in order.

Exit codes: 0 accepted or adjusted, 1 rejected (with --fail-on adjusted: or adjusted), 2 the question
is unusable. --cases: 0 every line was answered, 2 otherwise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.launch_forms import DEFAULT_GPU, DEFAULT_GPU_COUNT, DEFAULT_RELEASE
from engine.preflight import check_facts
from service.cli.answers import Answer, exit_code
from service.cli.formats import FORMATS, render
from service.cli.gate import gate
from service.cli.launches import add_launch, facts_of_ref, launch_of
from service.cli.problems import UsageError

_BROUGHT_BY_CASES = {
    "--release": "version",
    "--gpu": "gpu",
    "--gpu-count": "gpu_count",
    "--defaults": "defaults",
    "--env": "env",
}
_DEFAULTS = (DEFAULT_RELEASE, DEFAULT_GPU, DEFAULT_GPU_COUNT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.usage = "graphgate check MODEL [options] -- SGLANG-ARGUMENTS"
    add_launch(parser, release=False)
    parser.add_argument(
        "--release", help=f"SGLang release (default {DEFAULT_RELEASE}, or with -f what the manifest says)"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=("rejected", "adjusted"),
        default="rejected",
        help="the mildest verdict that exits 1 (default %(default)s)",
    )
    parser.add_argument("--strict", action="store_const", const="adjusted", dest="fail_on", help="--fail-on adjusted")
    parser.add_argument("-v", "--verbose", action="store_true", help="with the ledger: who changed what, and why")
    parser.add_argument(
        "-f",
        "--manifest",
        action="append",
        metavar="FILE",
        help="check every launch in a manifest; - is standard input",
    )
    parser.add_argument(
        "--cases", metavar="FILE", help="check many launches, one JSON object a line; - is standard input"
    )
    parser.add_argument(
        "--models-dir", type=Path, metavar="DIR", help="the folder below which --cases finds its models"
    )


def run(asked: argparse.Namespace) -> int:
    """Answer the question."""
    asked.release_named = asked.release is not None
    asked.release = asked.release or DEFAULT_RELEASE
    if asked.cases is not None:
        return _cases(asked)
    if asked.models_dir is not None:
        raise UsageError("--models-dir belongs to --cases.", remedy="Add --cases FILE, or leave it out.")
    if asked.manifest:
        _alone(asked, "-f")
        from service.cli.manifests import answers_in  # only manifests need YAML

        answers = answers_in(asked)
    else:
        launch = launch_of(asked)
        answers = [Answer(launch=launch, verdict=check_facts(launch, facts_of_ref(launch.model), gate()).verdict)]
    print(render(asked.format, answers, verbose=asked.verbose))
    return exit_code(answers, asked.fail_on)


def _cases(asked: argparse.Namespace) -> int:
    _alone(asked, "--cases")
    if asked.manifest:
        raise UsageError("--cases and -f are both given.", remedy="Keep one of them.")
    for option, key in _BROUGHT_BY_CASES.items():
        if getattr(asked, option.strip("-").replace("-", "_")) not in (None, [], *_DEFAULTS):
            raise UsageError(
                f"--cases and {option} are both given.", remedy=f"A line of the cases brings its own {key}."
            )
    if asked.models_dir is None:
        raise UsageError("--cases needs --models-dir.", remedy="Name the folder that holds the models' config files.")
    from service.cli.cases import answer_file  # a check of one launch does without

    return answer_file(asked.cases, asked.models_dir)


def _alone(asked: argparse.Namespace, option: str) -> None:
    for given, name in ((asked.model, "MODEL"), (asked.config_json, "--config-json"), (asked.engine_arguments, "--")):
        if given is not None:
            raise UsageError(f"{option} and {name} are both given.", remedy=f"{option} brings its own launches.")
