"""Store what the engine's own built models say of their prefill graphs, as expected values for the tests.

    python scripts/make_load_expectations.py OUT.json CONFIGS GPU=OBSERVATIONS.jsonl ...

The observations are those of ``scripts/observe_layers.py``, made on the GPU of that name; only models whose config.json
lies in the folder CONFIGS are stored.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def outcomes(row: dict[str, Any]) -> dict[str, str]:
    """Whether the engine attempts or drops the graph, by backend (``capture_prefill_graph``)."""
    if "without" in row:
        return {"breakable": "dropped", "full": "dropped"}
    whole = sum(row["attention"]) >= row["layers"]
    covered = row["hybrid_graph"] and all(a or m for a, m in zip(row["attention"], row["moe"], strict=False))
    return {
        "breakable": "attempted" if whole or covered else "dropped",
        "full": "attempted" if whole else "dropped",
    }


def main() -> None:
    out, configs, *given = sys.argv[1:]
    names = {path.stem for path in Path(configs).glob("*.json")}
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for word in given:
        gpu, _, file = word.partition("=")
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "error" not in row and row["origin"] in names:
                rows[(row["release"], gpu, row["origin"])] = outcomes(row)
    table = [
        {"release": release, "gpu": gpu, "model": model, "prefill": prefill}
        for (release, gpu, model), prefill in sorted(rows.items())
    ]
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in table)
    Path(out).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
