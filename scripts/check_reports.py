"""How many public reports of CUDA-graph failures are answered as they ended, and how quiet sound launches stay.

The reports and the launches known to work are part of the optional test material. A report counts where the verdict is
the expected one; where a warning is expected, a launch that runs and carries a warning about that rule counts; a near
miss must also be silent about its rule. A third of the reports (by the hash of their names) is set aside: write rules
with ``--part given``, and look at the rest once they stand.

Usage: .venv/bin/python scripts/check_reports.py [--material FOLDER] [--part given|aside|all] [--show]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import QuestionError
from engine.guards import findings_for
from engine.launch import ModelRef
from engine.launch_forms import launch_from_arguments
from engine.models.local import read_local
from engine.preflight import Checked, check_facts
from engine.sglang.releases import known_releases

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One case, what was answered (None: the release or the model is not known), and whether it is right."""

    case: Mapping[str, Any]
    checked: Checked | None
    problem: str

    @property
    def rule(self) -> str:
        return str(self.case["expect"].get("rule") or "")


def set_aside(case_id: str) -> bool:
    """Whether the case belongs to the third that rules are not written against."""
    return int(hashlib.sha256(case_id.encode()).hexdigest(), 16) % 3 == 0


def problem_of(case: Mapping[str, Any], checked: Checked) -> str:
    """Why the answer is not the expected one; empty where it is."""
    verdict, expect = checked.verdict, case["expect"]
    rule, wanted = expect.get("rule"), expect["verdict"]
    about = [f for f in verdict.findings if rule in f.covers]
    if wanted == "accepted_with_warning":
        if verdict.verdict == "rejected":
            return f"rejected: {verdict.summary[:160]}"
        return "" if any(f.severity == "warning" for f in about) else "no warning about it"
    if verdict.verdict != wanted:
        return f"{verdict.verdict}: {verdict.summary[:160]}"
    if case["id"].endswith("-near") and about:
        return f"not silent: {', '.join(f.rule for f in about)}"
    return ""


def answers(cases: Path, models: Path) -> Iterator[Answer]:
    """Every case with its answer, in the file's order."""
    for line in cases.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["version"] not in known_releases():
            yield Answer(case=case, checked=None, problem=f"release {case['version']} is not known")
            continue
        launch = launch_from_arguments(
            ModelRef(path=case["model"]),
            case["argv"],
            release=case["version"],
            gpu=case["gpu"],
            environment=case.get("env"),
        )
        try:
            checked = check_facts(launch, read_local(models / case["model"]))
        except QuestionError as error:
            yield Answer(case=case, checked=None, problem=str(error)[:160])
            continue
        yield Answer(case=case, checked=checked, problem=problem_of(case, checked))


def guard_time(checked: list[Checked], rounds: int = 5) -> tuple[float, float]:
    """Microseconds that the whole bundle of guards takes on a launch: the median, and the 95th percentile."""
    best = []
    for one in checked:
        taken = []
        for _ in range(rounds):
            began = time.perf_counter()
            findings_for(one.examined)
            taken.append(time.perf_counter() - began)
        best.append(min(taken) * 1e6)
    return statistics.median(best), statistics.quantiles(best, n=20)[-1]


def main() -> int:
    """Print the figures; exit 1 where a launch known to work is rejected."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--material", type=Path, default=ROOT.parent / "shared")
    reader.add_argument("--part", choices=("given", "aside", "all"), default="all")
    reader.add_argument("--show", action="store_true", help="print each case that is answered wrongly")
    asked = reader.parse_args()
    models, bugs = asked.material / "models", asked.material / "bugs"
    parts = {"given": (False,), "aside": (True,), "all": (False, True)}[asked.part]
    seen = [a for a in answers(bugs / "cases.jsonl", models) if set_aside(a.case["id"]) in parts]
    for name, aside in (("given", False), ("set aside", True)):
        _print_part(name, [a for a in seen if set_aside(a.case["id"]) is aside], show=asked.show)
    _print_suggestions(seen, show=asked.show)
    sound = [a for a in answers(bugs / "sound.jsonl", models) if a.checked is not None]
    rejected = _print_sound(sound, show=asked.show)
    median, high = guard_time([a.checked for a in (*seen, *sound) if a.checked is not None])
    print(f"all guards on one launch: median {median:.0f} us, 95th percentile {high:.0f} us")
    return 1 if rejected else 0


def _print_part(name: str, part: list[Answer], *, show: bool) -> None:
    if not part:
        return
    known = [a for a in part if a.checked is not None]
    right = sum(not a.problem for a in known)
    share = 100 * right / len(known) if known else 0.0
    print(f"{name}: {right} of {len(known)} reports as they ended ({share:.1f} %), {len(part) - len(known)} unanswered")
    if show:
        for answer in part:
            if answer.problem:
                expect = answer.case["expect"]
                print(f"  {answer.case['id']}: expected {expect['verdict']} {answer.rule}, {answer.problem}")


def _print_suggestions(seen: list[Answer], *, show: bool) -> None:
    rejected = [a for a in seen if a.checked is not None and a.checked.verdict.verdict == "rejected"]
    without = [a for a in rejected if not suggestion_runs(a)]
    print(f"rejected: {len(rejected) - len(without)} of {len(rejected)} carry a rewritten launch that is not rejected")
    if show:
        for answer in without:
            print(f"  {answer.case['id']}")


def suggestion_runs(answer: Answer) -> bool:
    """Whether a finding carries a rewritten launch that is not rejected in its turn."""
    checked = answer.checked
    for finding in checked.verdict.findings if checked is not None else ():
        if checked is not None and finding.suggestion is not None:
            launch = launch_from_arguments(
                checked.launch.model,
                finding.suggestion,
                release=checked.launch.release,
                gpu=checked.launch.gpu,
                environment=dict(checked.launch.environment),
            )
            if check_facts(launch, checked.facts).verdict.verdict != "rejected":
                return True
    return False


def _print_sound(sound: list[Answer], *, show: bool) -> list[Answer]:
    verdicts = [(a, a.checked.verdict) for a in sound if a.checked is not None]
    errors = [a for a, v in verdicts if any(f.severity == "error" for f in v.findings)]
    rejected = [a for a, v in verdicts if v.verdict == "rejected"]
    warned = [(a, v) for a, v in verdicts if any(f.severity == "warning" for f in v.findings)]
    print(f"sound: {len(sound)} launches, {len(rejected)} rejected, {len(errors)} with an error finding")
    print(f"sound: {len(warned)} of {len(sound)} launches carry a warning ({100 * len(warned) / len(sound):.0f} %)")
    if show:
        for answer in errors:
            print(f"  error: {answer.case['id']}")
        for answer, verdict in warned:
            rules = ", ".join(f.rule for f in verdict.findings if f.severity == "warning")
            print(f"  warning: {answer.case['id']}: {rules}")
    return rejected


if __name__ == "__main__":
    sys.exit(main())
