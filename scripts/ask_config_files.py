"""Ask the real engine how it merges configuration files (``--config``) with a command line.

    python scripts/ask_config_files.py RELEASE < api_tests/sglang/config_files/cases.json

To be run inside an environment where that engine release can be imported. A case is ``{"name", "words", "file"}``:
``file`` is the YAML text, null where no file lies there, and the words name it as ``FILE`` or ``FILE.txt``. Printed is
one JSON object: by case, the merged words or the exception's type and message.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


def merger_of(parser: argparse.ArgumentParser) -> Any:
    """The release's own merger over the release's own options."""
    for name in ("sglang.srt.utils.server_args_config_parser", "sglang.srt.server_args_config_parser"):
        try:
            return importlib.import_module(name).ConfigArgumentMerger(parser)
        except ModuleNotFoundError:
            continue
    raise SystemExit("this release has no ConfigArgumentMerger")


def main() -> None:
    server_args = importlib.import_module("sglang.srt.server_args").ServerArgs
    parser = argparse.ArgumentParser(prog="sglang serve")
    server_args.add_cli_args(parser)
    answers: dict[str, Any] = {}
    for case in json.load(sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "launch.yaml"
            if case["file"] is not None:
                for place in (path, path.with_suffix(".txt")):
                    place.write_text(case["file"], encoding="utf-8")
            words = [word.replace("FILE.txt", str(path.with_suffix(".txt"))) for word in case["words"]]
            words = [str(path) if word == "FILE" else word for word in words]
            try:
                answers[case["name"]] = merger_of(parser).merge_config_with_args(words)
            except Exception as error:  # what the engine raises is the answer
                message = str(error).replace(folder, "FOLDER")
                answers[case["name"]] = {"type": type(error).__name__, "message": message}
    print(json.dumps(answers, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
