#!/usr/bin/env bash
# Writes constraints.txt: the version of every package that graphgate[worker,dev] needs, transitive ones included.
# Usage: scripts/lock.sh           what the declarations in pyproject.toml allow today
#        scripts/lock.sh --keep    keep the pins there are, add what is missing
set -euo pipefail
cd "$(dirname "$0")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python="${PYTHON:-python3}"
"$python" -m venv "$work/venv"

keep=()
if [ "${1:-}" = --keep ]; then keep=(--constraint constraints.txt); fi
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --dry-run --ignore-installed \
    --report "$work/report.json" "${keep[@]}" --editable '.[worker,dev]'

"$work/venv/bin/python" - "$work/report.json" >"$work/constraints.txt" <<'PYTHON'
import json
import sys

# torch's builds (CPU, CUDA) carry a local version and bring their own exactly pinned libraries: the plain version
# fits them all, and those libraries are left to it.
OF_A_BUILD = ("nvidia-", "cuda-", "triton")

with open(sys.argv[1], encoding="utf-8") as report:
    found = {
        item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"].partition("+")[0]
        for item in json.load(report)["install"]
    }
print("# Written by scripts/lock.sh; do not edit. One line for each package that graphgate[worker,dev] needs.")
for name in sorted(found):
    if name != "graphgate" and not name.startswith(OF_A_BUILD):
        print(f"{name}=={found[name]}")
PYTHON
mv "$work/constraints.txt" constraints.txt
