"""Refuse a source file that has grown beyond what one sitting can read: 400 lines, most under 200."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 400
FOLDERS = ("engine", "service", "api_tests", "scripts")
SUFFIXES = {".py", ".sh", ".js", ".ts", ".css", ".html"}


def too_long(root: Path) -> list[tuple[Path, int]]:
    """The source files below ``root`` with more than ``LIMIT`` lines, longest first."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                lines = len(path.read_text(encoding="utf-8").splitlines())
                if lines > LIMIT:
                    found.append((path.relative_to(root), lines))
    return sorted(found, key=lambda pair: -pair[1])


def main() -> int:
    """Print each file over the limit; the exit code says whether there is one."""
    found = too_long(ROOT)
    for path, lines in found:
        print(f"{path}: {lines} lines; the limit is {LIMIT}: split it by what it decides")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
