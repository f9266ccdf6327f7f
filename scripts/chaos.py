"""Kill everything while captures run, seed by seed, and print what became of them: ``scripts/chaos.py [SEED ...]``.

Each seed is a fleet of its own: one API, four workers, Redis and PostgreSQL, all real, all killed with SIGKILL in an
order that the seed gives. The exit code is 0 where every promise was kept. ``CHAOS_FOLDER`` keeps logs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from api_tests.chaos.fleet import ENDED, VICTIMS, Found, fleet

COLUMNS = ("seed", "accepted", *ENDED, "begun again", "struck", *dict.fromkeys(VICTIMS), "refused", "seconds", "broken")


def main(words: list[str]) -> int:
    """Run the seeds (1 to 10 by default) one after the other."""
    seeds = [int(word) for word in words] or list(range(1, 11))
    print("SIGKILL to each of these, so many times; every capture that was accepted must end once, in one state.\n")
    _print(COLUMNS)
    broken = 0
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="graphgate-chaos-") as given:
            folder = Path(os.environ.get("CHAOS_FOLDER") or given) / f"seed-{seed}"
            folder.mkdir(parents=True)
            broken += _one(seed, folder)
    print(f"\n{len(seeds)} seeds, {broken} promises broken")
    return 1 if broken else 0


def _one(seed: int, folder: Path) -> int:
    with fleet(folder, seed) as chaos:
        chaos.run()
        found = Found.after(chaos)
    wrong = found.wrong(chaos)
    killed = [chaos.kills[victim] for victim in dict.fromkeys(VICTIMS)]
    states = [found.states[state] for state in ENDED]
    seconds = f"{chaos.seconds:.0f}"
    _print(
        (seed, len(chaos.accepted), *states, found.repeated, found.struck, *killed, chaos.refused, seconds, len(wrong))
    )
    for line in wrong:
        print(f"  {line}")
    return len(wrong)


def _print(cells: Iterable[object]) -> None:
    print("  ".join(f"{cell!s:>{len(name)}}" for name, cell in zip(COLUMNS, cells, strict=True)), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
