"""List the options that releases have removed, with what the last release that had them named instead.

    python scripts/list_retired.py [FOLDER]     writes engine/sglang/releases/retired.json

FOLDER holds one folder a release with its options.json (default: engine/sglang/releases). The replacement is the one
that the engine's own deprecation warning named.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RELEASES = Path(__file__).parent.parent / "engine" / "sglang" / "releases"


def version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def options_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The release's option strings, each with its row."""
    rows = json.loads((folder / "options.json").read_text(encoding="utf-8"))["options"]
    return {string: row for row in rows for string in row["strings"]}


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RELEASES
    folders = sorted((p.parent for p in source.glob("*/options.json")), key=lambda folder: version(folder.name))
    last: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder in folders:
        last |= {string: (folder.name, row) for string, row in options_of(folder).items()}
    newest = folders[-1].name
    retired = {
        string: {"last": release, "instead": row.get("new_flag") or row.get("error_message")}
        for string, (release, row) in sorted(last.items())
        if release != newest
    }
    value = {"made_by": "python scripts/list_retired.py", "newest": newest, "options": retired}
    (RELEASES / "retired.json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    print(RELEASES / "retired.json", len(retired))


if __name__ == "__main__":
    main()
