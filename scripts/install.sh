#!/usr/bin/env bash
# Makes .venv and installs graphgate into it, pinned by constraints.txt. Runs in a moment when nothing changed.
# Usage: scripts/install.sh [EXTRAS]   EXTRAS: "worker" (what serving needs) or "worker,dev" (the default)
set -euo pipefail
cd "$(dirname "$0")/.."

extras="${1:-worker,dev}"
venv=.venv

say() { printf 'install: %s\n' "$*" >&2; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    say "graphgate needs Python 3.11 or newer; found $(${PYTHON:-python3} --version 2>&1 || echo none)."
    say "Install one, or name it: make install PYTHON=/path/to/python3.11"
    return 1
}

# What an installation depends on: the project's own declarations, the pins and where the checkout lies (it is editable).
fingerprint() {
    { cat pyproject.toml constraints.txt engine/version.py; pwd; "$venv/bin/python" -VV; } | sha256sum | cut -c1-16
}

installed() {
    local wanted
    new_enough "$venv/bin/python" && [ -x "$venv/bin/graphgate" ] || return 1
    wanted="$(fingerprint)"
    [ -e "$venv/.installed-$wanted-$extras" ] || [ -e "$venv/.installed-$wanted-worker,dev" ]
}

if installed; then exit 0; fi

python="$(find_python)"
if ! new_enough "$venv/bin/python"; then
    say "making $venv with $("$python" --version)"
    if ! "$python" -m venv --clear "$venv"; then
        say "the Python at $python has no venv module; on Debian: apt-get install python3-venv"
        exit 1
    fi
fi

# One installation at a time in one checkout; whoever waited finds it done.
if command -v flock >/dev/null; then
    exec 9>"$venv/.install-lock"
    flock 9
    if installed; then exit 0; fi
fi

# compat: a plain .pth line; the default installs an import hook that costs every start of the command 15 ms.
say "installing graphgate[$extras], pinned by constraints.txt"
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input \
    --constraint constraints.txt --config-settings editable_mode=compat --editable ".[$extras]"
"$venv/bin/python" -m pip check --disable-pip-version-check >&2
# The package is run from the checkout, where a start without bytecode takes three times as long.
"$venv/bin/python" -m compileall -q engine service
rm -f "$venv"/.installed-*
touch "$venv/.installed-$(fingerprint)-$extras"
