"""Compare predictions with what the real engine said.

    python scripts/conformance.py GOLD.jsonl[.gz] --models-dir DIR [--release 0.5.23] [--set-aside] [--top 20]

A line of GOLD is ``{"id", "version", "gpu", "model", "argv", "env"?, "engine_says"}``; ``model`` is a config.json file
below DIR. Printed are the differences, grouped by the step that made the value, and the shares in percent: outcome;
backends (both phases, of resolved launches); graph (every field of both phases); args (chunk and page size, the three
attention backends, and the memory fraction to 0.0015, all at once); error (stage and type, of refused launches).

Left out are refusals that only the asked machine's libraries explain (:func:`_of_the_machine`).

A fifth of the cases, chosen by the hash of the id, is set aside: it is left out, unless ``--set-aside`` asks for it
alone.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import hashlib
import json
import sys
import time
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from _scoring import Tally, compare

from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.predict import Predicted, predict


def cases(path: Path, release: str | None, *, set_aside: bool) -> Iterator[dict[str, Any]]:
    """The cases of one file that are asked for."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if release is not None and case["version"] != release:
                continue
            if _of_the_machine(case):
                continue
            held_out = int(hashlib.sha256(case["id"].encode()).hexdigest(), 16) % 5 == 0
            if held_out == set_aside:
                yield case


def _of_the_machine(case: dict[str, Any]) -> bool:
    """Whether the refusal is about a library that the asked machine lacks and the release's own image has.

    For Kimi-K3's decode context parallelism the engine looks at FlashInfer's signatures; the releases that ask for
    FlashInfer 0.6.17 here (0.5.18 and newer) themselves require that version or a newer one.
    """
    message = (case["engine_says"].get("error") or {}).get("message", "")
    return "FlashInfer 0.6.17 or newer" in message


@cache
def facts_of(path: Path) -> ModelFacts:
    """The facts that a prediction needs: the config itself."""
    config = json.loads(path.read_text(encoding="utf-8"))
    return ModelFacts(
        model_id=None,
        source="local",
        architectures=tuple(config.get("architectures") or ()),
        model_type=config.get("model_type"),
        config=config,
    )


def ask(case: dict[str, Any], models: Path) -> Predicted:
    """The prediction for one case."""
    launch = Launch(
        model=ModelRef(path=Path(case["model"]).stem),
        release=case["version"],
        gpu=case["gpu"],
        arguments=tuple(case["argv"]),
        environment=case.get("env") or {},
    )
    return predict(launch, facts_of(models / case["model"]), gpu_named(case["gpu"]))


def count(case: dict[str, Any], predicted: Predicted, tally: Tally) -> None:
    """Count one case, with the steps that made its values."""
    last = predicted.resolution.step if predicted.resolution else None
    compare(
        case,
        predicted.prediction.to_dict(),
        tally,
        makers={decision.key: decision.step for decision in predicted.ledger},
        where=last.name if predicted.prediction.error and last else "",
    )


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("gold", type=Path)
    reader.add_argument("--models-dir", type=Path, required=True)
    reader.add_argument("--release")
    reader.add_argument("--set-aside", action="store_true")
    reader.add_argument("--top", type=int, default=20)
    asked = reader.parse_args()
    tally, broken, spent = Tally(), collections.Counter[str](), 0.0
    for case in cases(asked.gold, asked.release, set_aside=asked.set_aside):
        facts_of(asked.models_dir / case["model"])
        started = time.perf_counter()
        try:
            predicted = ask(case, asked.models_dir)
        except Exception as error:  # a mistake of ours: counted and shown, so that one does not hide the others
            frame = traceback.extract_tb(error.__traceback__)[-1]
            broken[
                f"{type(error).__name__}: {error} at {Path(frame.filename).name}:{frame.lineno}  e.g. {case['id']}"
            ] += 1
            tally.count("outcome", False, case, note=f"broken: {type(error).__name__}: {error}"[:150])
            for what in ("backends", "graph", "args") if case["engine_says"]["outcome"] == "resolved" else ("error",):
                tally.count(what, False, case, note="broken")
            continue
        finally:
            spent += time.perf_counter() - started
        count(case, predicted, tally)
    print(tally.report(asked.top))
    for text, number in broken.most_common(10):
        print(f"{number:5d} BROKEN {text}"[:300])
    print(f"{1e6 * spent / max(tally.seen['outcome'], 1):.0f} microseconds a case")
    return 0


if __name__ == "__main__":
    sys.exit(main())
