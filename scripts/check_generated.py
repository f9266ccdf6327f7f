"""Make every generated file again, in memory, and compare it with the one that is committed.

Each script here that knows ``--check`` writes files without it, and with it compares and exits 1 where one is stale.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent


def generators() -> list[Path]:
    """The scripts that can compare what they make with what is committed."""
    candidates = sorted(set(SCRIPTS.glob("*.py")) - {Path(__file__).resolve()})
    return [script for script in candidates if '"--check"' in script.read_text(encoding="utf-8")]


def main() -> int:
    """Run them all, so that one run names every stale file."""
    stale = []
    for script in generators():
        done = subprocess.run([sys.executable, str(script), "--check"], cwd=SCRIPTS.parent, check=False)  # noqa: S603 - our own scripts
        if done.returncode:
            stale.append(script.name)
    for name in stale:
        print(f"out of date: run .venv/bin/python scripts/{name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
