"""Write docs/rules/: one page a rule and a list of them; --check compares instead, and exits 1 where one is stale.

Usage: .venv/bin/python scripts/make_rule_pages.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.guards import all_rules
from service.cli.rule_pages import index, page, page_name

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "rules"
MADE = "<!-- Made by scripts/make_rule_pages.py from the guards' own docstrings. -->\n"


def pages() -> dict[str, str]:
    """Every page, by its file name."""
    rules = all_rules()
    return {"README.md": MADE + index(rules), **{page_name(rule): MADE + page(rule) for rule in rules}}


def main() -> int:
    """Write the pages, or say which are not what would be written."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--check", action="store_true")
    check = reader.parse_args().check
    made = pages()
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    if check:
        for name in stale:
            print(f"docs/rules/{name} is stale")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in made:
            (FOLDER / name).write_text(made[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
