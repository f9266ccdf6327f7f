"""Ask an installed release of the engine what its launcher says of resolved launches.

    python scripts/ask_launcher.py api_tests/sglang/launching/launches.txt api_tests/conformance/configs OUT.json

Run it with a Python in which that release of SGLang is installed and which sees the GPU to ask for. A line of the file
is ``MODEL [NAME=VALUE ...] ARGUMENT...``, MODEL a config.json below the second path. Written is, by line, null where
the launcher would start, else ``{"type", "message"}`` of what it raises; launches that do not resolve are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

with contextlib.suppress(ImportError):
    import fake_gpu  # type: ignore[import-not-found]  # noqa: F401  where the environment brings a stand-in for the GPU
from sglang.srt.server_args import prepare_server_args  # the release that is asked

VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


def ask(line: str, folder: Path) -> dict[str, str] | None:
    """What the launcher raises for one resolved launch."""
    _, *words = shlex.split(line)
    while words and (found := VARIABLE.fullmatch(words[0])):
        os.environ[found.group(1)] = found.group(2)
        words = words[1:]
    record = prepare_server_args(["--model-path", str(folder), "--skip-tokenizer-init", *words])
    if hasattr(record, "resolve_once"):  # until 0.5.18 a record resolves while it is made
        record.resolve_once()
    try:
        record.check_server_args()
    except Exception as error:  # whatever it raises is the answer
        return {"type": type(error).__name__, "message": str(error)}
    return None


def main() -> None:
    launches, configs, out = (Path(word) for word in sys.argv[1:4])
    answers = {}
    kept = dict(os.environ)
    with tempfile.TemporaryDirectory() as root:
        for line in launches.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            model = shlex.split(line)[0]
            folder = Path(root) / model
            folder.mkdir(exist_ok=True)
            shutil.copy((configs / model).with_suffix(".json"), folder / "config.json")
            try:
                answers[line] = ask(line, folder)
            except (Exception, SystemExit) as error:  # it does not resolve: another test's subject
                print(f"left out: {line}: {error}", file=sys.stderr)
            os.environ.clear()
            os.environ.update(kept)
    rows = ",\n".join(f"{json.dumps(line)}: {json.dumps(answer)}" for line, answer in answers.items())
    out.write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
