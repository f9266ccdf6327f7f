"""Compare predictions with what the real engine said.

    python scripts/conformance.py GOLD.jsonl[.gz] --models-dir DIR [--release 0.5.23] [--set-aside] [--top 20]

A line of GOLD is ``{"id", "version", "gpu", "model", "argv", "env"?, "engine_says"}``; ``model`` is a config.json file
below DIR. Printed are the differences, grouped by the step that made the value, and the shares in percent: outcome;
backends (both phases, of resolved launches); graph (every field of both phases); args (chunk and page size, the three
attention backends, and the memory fraction to 0.0015, all at once); error (stage and type, of refused launches).

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

from engine.hardware import gpu_named
from engine.launch import Launch, ModelRef
from engine.models.facts import ModelFacts
from engine.sglang.predict import Predicted, predict

GRAPH_KEYS = (
    "backend",
    "max_bs",
    "bs",
    "max_context_size",
    "full_prefill_max_req",
    "full_prefill_prefix_chunk_tokens",
    "max_seq_len",
)
ARGUMENTS = (
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "chunked_prefill_size",
    "page_size",
)
FRACTION_TOLERANCE = 0.0015


def cases(path: Path, release: str | None, *, set_aside: bool) -> Iterator[dict[str, Any]]:
    """The cases of one file that are asked for."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if release is not None and case["version"] != release:
                continue
            held_out = int(hashlib.sha256(case["id"].encode()).hexdigest(), 16) % 5 == 0
            if held_out == set_aside:
                yield case


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


class Tally:
    """Hits and misses, with the differences by kind."""

    def __init__(self) -> None:
        self.seen: collections.Counter[str] = collections.Counter()
        self.hit: collections.Counter[str] = collections.Counter()
        self.differences: collections.Counter[tuple[str, str, str]] = collections.Counter()
        self.examples: dict[tuple[str, str, str], list[str]] = {}

    def count(self, what: str, ok: bool, case: dict[str, Any], *, step: str = "", note: str = "") -> None:
        """One comparison; ``step`` is the step that made the wrong value."""
        self.seen[what] += 1
        self.hit[what] += ok
        if ok:
            return
        key = (what, step, note)
        self.differences[key] += 1
        example = f"{case['id']} {case['gpu']} {case['model']} {' '.join(case['argv'])}"
        self.examples.setdefault(key, []).append(example)

    def report(self, top: int) -> str:
        lines = []
        for key, number in self.differences.most_common(top):
            what, step, note = key
            lines.append(f"{number:5d} {what} [{step or '-'}] {note}")
            lines.extend(f"        {example}" for example in self.examples[key][:2])
        shares = (
            f"{what}={100 * self.hit[what] / self.seen[what]:.2f}"
            for what in ("outcome", "backends", "graph", "args", "error", "message")
            if self.seen[what]
        )
        return "\n".join([*lines, " ".join(shares) + f" n={self.seen['outcome']}"])


def compare(case: dict[str, Any], predicted: Predicted, tally: Tally) -> None:
    """Count one case."""
    engine, ours = case["engine_says"], predicted.prediction.to_dict()
    makers = {decision.key: decision.step for decision in predicted.ledger}
    same = engine["outcome"] == ours["outcome"]
    engine_error, our_error = engine.get("error") or {}, ours.get("error") or {}
    last = predicted.resolution.step if predicted.resolution else None
    where = last.name if our_error and last else ""
    words = (engine_error.get("message") or our_error.get("message") or "")[:110]
    tally.count("outcome", same, case, step=where, note=f"{engine['outcome']} -> {ours['outcome']}: {words}")
    if engine["outcome"] == "refused":
        ok = same and all(engine_error[key] == our_error[key] for key in ("stage", "type"))
        note = " -> ".join(f"{e.get('type')} {e.get('message', '')[:80]}" for e in (engine_error, our_error))
        tally.count("error", ok, case, step=where, note=note if same else "outcome")
        if same:
            tally.count("message", engine_error["message"] == our_error["message"][:600], case, step=where, note=note)
        return
    graphs, our_graphs = engine["graph"], ours.get("graph") or {"decode": {}, "prefill": {}}
    wrong = [
        f"{phase}.{key}"
        for phase in ("decode", "prefill")
        for key in GRAPH_KEYS
        if graphs[phase].get(key) != our_graphs[phase].get(key)
    ]
    backends = [name for name in wrong if name.endswith(".backend")]
    for what, names in (("backends", backends), ("graph", wrong)):
        step = makers.get(names[0], "") if names else ""
        tally.count(
            what, same and not names, case, step=step, note=_note(names, graphs, our_graphs) if same else "outcome"
        )
    args, our_args = engine["args"], ours.get("args") or {}
    bad = [name for name in ARGUMENTS if args.get(name) != our_args.get(name)]
    fraction, our_fraction = args.get("mem_fraction_static"), our_args.get("mem_fraction_static")
    if fraction is None or our_fraction is None or abs(fraction - our_fraction) > FRACTION_TOLERANCE:
        bad.append("mem_fraction_static")
    note = ", ".join(f"{name}: {args.get(name)} -> {our_args.get(name)}" for name in bad) if same else "outcome"
    tally.count("args", same and not bad, case, step=makers.get(bad[0], "") if bad else "", note=note)


def _note(names: list[str], graphs: dict[str, Any], ours: dict[str, Any]) -> str:
    shown = []
    for name in names[:2]:
        phase, key = name.split(".")
        left, right = graphs[phase].get(key), ours[phase].get(key)
        shown.append(name if key == "bs" else f"{name}: {left} -> {right}")
    return ", ".join(shown)


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
        compare(case, predicted, tally)
    print(tally.report(asked.top))
    for text, number in broken.most_common(10):
        print(f"{number:5d} BROKEN {text}"[:300])
    print(f"{1e6 * spent / max(tally.seen['outcome'], 1):.0f} microseconds a case")
    return 0


if __name__ == "__main__":
    sys.exit(main())
