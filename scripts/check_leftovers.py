"""Refuse in committed files what belongs to one machine or one moment: paths, mirrors, secrets, unfinished notes.

A pattern is a row of ``LEFTOVERS``; add one by adding a row. A line that must hold such text says why:
``leftover-ok: reason``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 2_000_000
EXEMPT = "leftover-ok:"

LEFTOVERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a path of one machine", re.compile(r"(?<![\w.~}-])/(?:home/(?!graphgate\b)\w+|root|work|Users/\w+)/")),
    (
        "a package mirror",
        re.compile(r"--(?:extra-)?index-url|--find-links|PIP_(?:EXTRA_)?INDEX_URL|://(?:files|registry|deb)\."),
    ),
    ("a secret", re.compile(r"\bhf_[A-Za-z0-9]{30,}\b|-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b")),
    ("an API key of graphgate", re.compile(r"\bgg_[a-z2-9]{8}_[\w-]{43}")),
    ("a merge conflict", re.compile(r"^(?:<{7}|>{7}) ")),
    ("an unfinished note", re.compile(r"\b(?:TODO|FIXME|XXX)\b")),
    ("a debugger", re.compile(r"^\s*(?:breakpoint\(\)|import i?pdb\b)")),
    (
        "talk about how the work came about",
        re.compile(r"\b(?:as requested|the owner (?:asked|wants)|my colleague|this issue asks)\b", re.I),
    ),
)


QUOTED = "expectations-"
"""Files whose names begin so hold the engine's own words, unfinished notes of its authors among them."""


def leftovers(text: str, *, quoted: bool = False) -> list[tuple[int, str, str]]:
    """``(line number, what it is, the text found)`` for each leftover in a file's text."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if EXEMPT in line:
            continue
        for what, pattern in LEFTOVERS:
            match = pattern.search(line)
            if match and not (quoted and what == "an unfinished note"):
                found.append((number, what, match.group().strip()))
    return found


def tracked(root: Path) -> list[Path]:
    """The files that git tracks, or everything but hidden and built folders where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)  # noqa: S607 - git, wherever it is
    if listed.returncode == 0:
        return [root / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in root.rglob("*") if path.is_file() and not any(p.startswith(".") for p in path.parts)]


def main() -> int:
    """Print each leftover as ``file:line``; the exit code says whether there is one."""
    found = 0
    for path in tracked(ROOT):
        if not path.is_file() or path.stat().st_size > MAX_BYTES or path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, what, snippet in leftovers(text, quoted=path.name.startswith(QUOTED)):
            print(f"{path.relative_to(ROOT)}:{number}: {what}: {snippet}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
