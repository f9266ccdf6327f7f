"""List the engine arguments that steps, launcher checks and guards read: the others have no bearing on graphs.

python scripts/list_bearing.py            writes engine/sglang/bearing.json
python scripts/list_bearing.py --check    fails where the file is not what this script writes
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

from engine.sglang.releases import known_releases, release_named

NOT_READ = frozenset({"config"})
"""Arguments that share their name with something else in the sources."""

FOLDER = Path(__file__).parent.parent / "engine" / "sglang"


def read_in(path: Path) -> set[str]:
    """Every attribute name and text of one source file: a superset of the arguments that it reads."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.add(node.value)
    return names


def main() -> int:
    arguments = {name for text in known_releases() for name in release_named(text).defaults}
    sources = [
        *FOLDER.glob("steps/**/*.py"),
        *FOLDER.glob("launching/**/*.py"),
        *FOLDER.glob("*.py"),
        *(FOLDER.parent / "guards").glob("*.py"),
    ]
    read = set().union(*(read_in(path) for path in sources))
    value = {"made_by": "python scripts/list_bearing.py", "arguments": sorted(arguments & read - NOT_READ)}
    text = json.dumps(value, indent=1) + "\n"
    target = FOLDER / "bearing.json"
    if "--check" in sys.argv:
        same = target.is_file() and target.read_text(encoding="utf-8") == text
        print("bearing.json is", "current" if same else "stale: run python scripts/list_bearing.py")
        return 0 if same else 1
    target.write_text(text, encoding="utf-8")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
