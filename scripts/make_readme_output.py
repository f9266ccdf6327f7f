"""Run the commands of README.md against a real server and put what they print below them; --check compares instead.

A ``console`` block holds commands after ``$ `` and their output. The commands of one block share one shell. What
README.md calls 127.0.0.1:8000 is here a server of our own on a free port, offline, with an empty database.

Usage: .venv/bin/python scripts/make_readme_output.py [--check]
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SHOWN = "127.0.0.1:8000"
TOOLS = ("bash", "curl", "jq", "fold")
START_S = 30
BLOCK_S = 180

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def commands_in(block: str) -> list[str]:
    """The commands of a console block. One goes on while a quote is open or its line ends in ``|`` or a backslash."""
    found: list[str] = []
    whole = True
    for line in block.splitlines():
        if whole and not line.startswith("$ "):
            continue
        if whole:
            found.append(line.removeprefix("$ "))
        else:
            found[-1] += f"\n{line}"
        whole = not found[-1].endswith(("|", "\\")) and _quotes_closed(found[-1])
    return found


def _quotes_closed(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


@contextmanager
def server() -> Iterator[tuple[str, dict[str, str]]]:
    """A running server: its ``host:port``, and the environment in which commands find it and its tools."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as data:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHGATE_", "HF_"))}
        environment |= {"GRAPHGATE_DATA": data, "GRAPHGATE_OFFLINE": "1", "NO_COLOR": "1", "COLUMNS": "100"}
        command = [sys.executable, "-m", "service", "serve", "--port", address.rpartition(":")[2]]
        log = Path(data) / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)  # noqa: S603 - our own command
        try:
            _wait_until_it_answers(address, process, log)
            yield address, environment
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_until_it_answers(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://{address}/readyz", timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the server did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")


def with_outputs(block: str, address: str, environment: dict[str, str]) -> str:
    """A console block's text with what its commands print now."""
    commands = commands_in(block)
    script = "".join(f"{command}\nprintf '\\0'\n" for command in commands).replace(SHOWN, address)
    done = subprocess.run(  # noqa: S603 - the README's own commands
        [shutil.which("bash") or "/bin/bash", "-c", script],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=BLOCK_S,
        check=False,
    )
    outputs = re.sub(r"[ \t]+$", "", done.stdout.decode(), flags=re.M).replace(address, SHOWN).split("\0")
    return "".join(
        f"$ {command}\n{output.rstrip()}\n" if output.strip() else f"$ {command}\n"
        for command, output in zip(commands, outputs, strict=False)
    )


def main() -> int:
    """Write README.md, or with --check say whether it is what would be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare, and exit 1 where README.md shows something else")
    check = parser.parse_args().check
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"README.md is not compared: its commands need {' and '.join(missing)}")
        return int(not check or bool(os.environ.get("GRAPHGATE_NO_SKIP")))
    before = README.read_text(encoding="utf-8")
    with server() as (address, environment):
        after = BLOCK.sub(lambda match: f"```console\n{with_outputs(match.group(1), address, environment)}```", before)
    if check:
        sys.stdout.writelines(
            difflib.unified_diff(
                before.splitlines(True), after.splitlines(True), "README.md", "what the commands print"
            )
        )
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
