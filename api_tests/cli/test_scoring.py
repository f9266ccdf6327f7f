"""``scripts/compare_cases.py`` counts as the reference scorer of the test material does."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from api_tests.cli.command import graphgate
from api_tests.material import ROOT, material


def test_the_shares_are_those_of_the_reference_scorer(tmp_path: Path) -> None:
    """Over answers of which some are missing, and some are made wrong in one field each."""
    scorer, gold_file, models = material("golden", "score.py"), material("golden", "dev.jsonl.gz"), material("models")
    with gzip.open(gold_file, "rt", encoding="utf-8") as lines:
        gold = [line for line in lines if json.loads(line)["version"] == "0.5.23"][:400]
    (tmp_path / "gold.jsonl").write_text("".join(gold), encoding="utf-8")
    done = graphgate("check", "--cases", str(tmp_path / "gold.jsonl"), "--models-dir", str(models))
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len(gold)
    for number, answer in enumerate(answers):
        prediction = answer.get("prediction", {})
        if prediction.get("outcome") == "refused":
            prediction["error"]["type"] = "Other" if number % 3 == 0 else prediction["error"]["type"]
        elif number % 7 == 0:
            prediction["outcome"] = "refused"
        elif number % 7 == 1:
            prediction["graph"]["prefill"]["backend"] = "other"
        elif number % 7 == 2:
            prediction["graph"]["decode"]["bs"] = [1]
        elif number % 7 == 3:
            prediction["args"]["mem_fraction_static"] = (prediction["args"]["mem_fraction_static"] or 0) + 0.0016
        elif number % 7 == 4:
            prediction["args"]["page_size"] = 3
    kept = [json.dumps(answer) for number, answer in enumerate(answers) if number % 11]
    (tmp_path / "out.jsonl").write_text("\n".join(kept), encoding="utf-8")
    files = [str(tmp_path / "gold.jsonl"), str(tmp_path / "out.jsonl")]
    shares = []
    for script in (scorer, ROOT / "scripts" / "compare_cases.py"):
        told = subprocess.run([sys.executable, str(script), *files], capture_output=True, text=True, check=True)
        last = told.stdout.splitlines()[-1]
        shares.append({name: value for name, _, value in (word.partition("=") for word in last.split())})
    reference, ours = shares
    assert set(reference) == {"outcome", "backends", "graph", "args", "error", "answered", "n"}
    assert {name: ours[name] for name in reference} == reference
    assert float(reference["graph"]) < float(reference["backends"]) < 100
