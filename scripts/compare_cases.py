"""Compare the output of ``graphgate check --cases`` with what the real engine said.

    python scripts/compare_cases.py GOLD.jsonl[.gz] OUT.jsonl [--top 12]

A line of GOLD is a case with ``engine_says``; a line of OUT an answer with the case's ``id``. Printed are the
commonest differences, the share of each release, and the shares of ``scripts/_scoring.py``, with answered: a verdict
was given.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _scoring import Tally, compare

VERDICTS = frozenset({"accepted", "adjusted", "rejected"})


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file, packed or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main() -> int:
    """Print the comparison."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("gold", type=Path)
    reader.add_argument("out", type=Path)
    reader.add_argument("--top", type=int, default=12)
    asked = reader.parse_args()
    answers = {answer["id"]: answer for answer in rows(asked.out) if "id" in answer}
    whole = Tally()
    releases: dict[str, Tally] = collections.defaultdict(Tally)
    for case in rows(asked.gold):
        answer = answers.get(case["id"], {})
        for tally in (whole, releases[case["version"]]):
            compare(case, answer.get("prediction") or {}, tally, makers={}, where="")
            tally.count("answered", answer.get("verdict") in VERDICTS, case)
    print(whole.report(asked.top))
    if len(releases) > 1:
        for release in sorted(releases, key=lambda text: [int(part) for part in text.split(".")]):
            print(f"  {release}: {releases[release].report(0)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
