"""Ask the real engine about the launches of the conformance tests, and keep its answers.

    python scripts/make_expectations.py 0.5.23 [--missing] -- COMMAND...

With ``--missing`` only launches that have no answer yet are put to the engine.

COMMAND is run once a GPU, with the release and the GPU's name appended. It reads one JSON case a line, ``{"id",
"config", "argv", "env"}`` with ``config`` the path of a config.json, has that release resolve the launch on that GPU,
and prints one line a case, ``{"id", "outcome", "graph", "args", "locked", "error"}``. The answers are written to
``api_tests/conformance/expectations-RELEASE.json``.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
from typing import Any

from api_tests.conformance.launches import CONFIGS, FOLDER, Case, cases

KEPT = ("outcome", "graph", "args", "locked", "error")


def ask(command: list[str], release: str, gpu: str, group: list[Case]) -> dict[str, dict[str, Any]]:
    """The engine's answers for the launches on one GPU, by launch."""
    lines = "".join(
        json.dumps(
            {
                "id": case.line,
                "config": str((CONFIGS / case.model).with_suffix(".json").resolve()),
                "argv": list(case.arguments),
                "env": dict(case.environment),
            }
        )
        + "\n"
        for case in group
    )
    done = subprocess.run([*command, release, gpu], input=lines, capture_output=True, text=True, check=True)  # noqa: S603  the caller's own command
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return {answer["id"]: {key: answer[key] for key in KEPT if key in answer} for answer in answers}


def kept(release: str) -> dict[str, dict[str, Any]]:
    """The answers that are there already, by launch."""
    path = FOLDER / f"expectations-{release}.json"
    value: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return value


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("release")
    reader.add_argument("--again", action="store_true", help="ask about every launch, not only about new ones")
    reader.add_argument("command", nargs="+")
    asked = reader.parse_args()
    known = {} if asked.again else kept(asked.release)
    groups: dict[str, list[Case]] = collections.defaultdict(list)
    for case in cases():
        if case.line not in known:
            groups[case.gpu].append(case)
    answers: dict[str, dict[str, Any]] = {}
    for gpu, group in groups.items():
        answers |= ask(asked.command, asked.release, gpu, group)
    answers = kept(asked.release) | answers  # read again: the questions took their time
    missing = [case.line for case in cases() if case.line not in answers]
    if missing:
        sys.exit(f"no answer for {len(missing)} launches, first: {missing[0]}")
    rows = ",\n".join(f"{json.dumps(case.line)}: {json.dumps(answers[case.line], sort_keys=True)}" for case in cases())
    path = FOLDER / f"expectations-{asked.release}.json"
    path.write_text("{\n" + rows + "\n}\n", encoding="utf-8")
    print(path, len(answers))


if __name__ == "__main__":
    main()
