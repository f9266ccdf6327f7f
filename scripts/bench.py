"""Speed, side by side in one run. Each section is a file ``bench_NAME.py`` beside this one.

    python scripts/bench.py [--only NAME [NAME ...]] [--rounds 5] [options of the sections]

A section has ``options(reader)``, which adds its own options, and ``run(asked)``, which measures and prints; its
docstring says what it measures and how. The machine's other load shows in every figure by the clock; the ratios,
measured in the same minutes, are what to compare.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType


def sections() -> list[str]:
    """The names of the sections there are."""
    return sorted(file.stem.removeprefix("bench_") for file in Path(__file__).parent.glob("bench_*.py"))


def section(name: str) -> ModuleType:
    """The module of that section; only those that are run are imported."""
    return importlib.import_module(f"bench_{name}")


def main() -> int:
    """Run the sections that were asked for, one after the other."""
    known = sections()
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--only", nargs="+", choices=known, default=known, metavar="NAME", help=", ".join(known))
    reader.add_argument("--rounds", type=int, default=5)
    chosen = reader.parse_known_args([word for word in sys.argv[1:] if word not in ("-h", "--help")])[0].only
    modules = [section(name) for name in chosen]
    for module in modules:
        module.options(reader.add_argument_group(module.__name__.removeprefix("bench_"), module.__doc__))
    asked = reader.parse_args()
    print(f"{os.cpu_count()} processors; processes waiting or running in the last minute: {os.getloadavg()[0]:.1f}")
    for module in modules:
        print()
        module.run(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
