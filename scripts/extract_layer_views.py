"""Write how one SGLang release's prefill graph sees each architecture's layers, as data.

    python scripts/extract_layer_views.py 0.5.23 engine/sglang/releases --models SGLANG/srt/models \\
        --observed 0.5.23.jsonl --observed-models SGLANG-0.5.23/srt/models

writes ``releases/0.5.23/layer_views.json`` from what ``scripts/observe_layers.py`` saw of built models. An architecture
that was not built in this release takes the view of the observed release where the classes of its layers look the same
in both, then that of a built architecture with the same classes of layers, then what its syntax tree says; ``basis``
tells which: "built", "carried", "source" or "assumed". Only facts are written.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from _layer_sources import Look, Sources

FALLBACK = "*"
"""Stands for every architecture that the registry does not hold: Transformers' own class, wrapped."""

WRAPPED = "Transformers"
"""How the names of the engine's wrappers begin."""

ATTENTION = ("attention", "chunked_attention", "sliding_attention")


def summary(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The view of one architecture, from all that was seen of it."""
    built = [row for row in rows if "error" not in row]
    without = sorted({row["without"] for row in built if "without" in row})
    built = [row for row in built if "without" not in row]
    if not built:
        return {"without": without[0]}
    kinds: dict[str, set[bool]] = defaultdict(set)
    moe: dict[str, set[bool]] = defaultdict(set)
    for row in built:
        whole = sum(row["attention"]) >= row["span"]
        names = row.get("kinds") or []
        if len(names) != row["layers"] or len(row["attention"]) != row["layers"]:
            names = ["*"] * row["layers"]
        for name, sees, routed in zip(names, row["attention"], row["moe"], strict=False):
            kinds[name].add(sees or whole)
            moe[name].add(routed)
    view: dict[str, Any] = {"seen": {name: "some" if len(v) > 1 else v.pop() for name, v in sorted(kinds.items())}}
    values = set(view["seen"].values())
    if values == {True}:
        view["seen"] = "all"
    elif values == {False}:
        view["seen"] = "none"
    if not all(row["stages"] for row in built):
        view["stages"] = False
    graphs = sorted({row["sm"] for row in built if row["hybrid_graph"]})
    if graphs:
        view["hybrid_graph"] = graphs
        view["moe"] = sorted(name for name, found in moe.items() if found == {True})
    return view


def _served(row: dict[str, Any], registry: dict[str, str]) -> str:
    """The name by which the built class is registered."""
    if row["class"].startswith(WRAPPED):
        return FALLBACK
    return str(row["architecture"] if row["architecture"] in registry else row["class"])


class Views:
    """The views of one release, from observations of it or of another one."""

    def __init__(self, release: str, sources: Sources, observed: Sources, rows: Iterable[dict[str, Any]]) -> None:
        self.version = tuple(int(part) for part in release.split("."))
        self.sources, self.observed = sources, observed
        own: dict[str, list[dict[str, Any]]] = defaultdict(list)
        other: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            if "error" not in row:
                registry = sources.registry if row["release"] == release else observed.registry
                (own if row["release"] == release else other)[_served(row, registry)].append(row)
        self.built = {name: summary(found) for name, found in own.items()}
        self.carried = {name: summary(found) for name, found in other.items()}
        self.alike: dict[Look, dict[str, Any]] = {}
        for name in observed.registry:
            look = observed.look(name)
            view = self.built.get(name) or self.carried.get(name)
            if look and view and "without" not in view:
                self.alike.setdefault(look, view)

    def view(self, name: str) -> dict[str, Any]:
        """The view of one architecture."""
        if name in self.built:
            return {**self._graphs(name), **self.built[name], "basis": "built"}
        if name == FALLBACK or name.startswith(WRAPPED):
            wrapped = self.built.get(FALLBACK) or self.carried.get(FALLBACK, {"seen": "none"})
            return {**wrapped, "basis": "built" if FALLBACK in self.built else "carried"}
        if self.version < (0, 5, 16) and not self.sources.has_model(name):
            return {"without": "language model", "basis": "source"}
        look = self.sources.look(name)
        hidden = [entry for entry in look if entry[2] != "seen"]
        if self.version < (0, 5, 19) and hidden and all(holder == "mixer" for _, holder, _ in hidden):
            return {"seen": "all", "stages": False, "basis": "source"}  # layers without attention were counted too
        same = name in self.observed.registry and self.observed.look(name) == look
        view = self.carried.get(name) if same else None
        view = view or (self.alike.get(look) if look else None)
        if view is not None:
            kept = dict(view)
            if self.version < (0, 5, 23):
                kept.pop("hybrid_graph", None)
                kept.pop("moe", None)
            return {**kept, "basis": "carried"}
        return self._from_source(look)

    def _graphs(self, name: str) -> dict[str, Any]:
        """What was seen on further GPUs of an architecture with the same classes of layers."""
        look = self.sources.look(name) if name in self.sources.registry else frozenset()
        alike = self.alike.get(look, {}) if self.version >= (0, 5, 23) else {}
        return {key: alike[key] for key in ("hybrid_graph", "moe") if key in alike}

    @staticmethod
    def _from_source(look: Look) -> dict[str, Any]:
        states = {"hidden" if state == "unknown" else state for _, _, state in look}
        if not states or any(state == "unknown" and holder != "mixer" for _, holder, state in look):
            return {"seen": "all", "basis": "assumed"}
        if states == {"seen"}:
            return {"seen": "all", "basis": "source"}
        if states == {"hidden"}:
            return {"seen": "none", "basis": "source"}
        return {"seen": dict.fromkeys(ATTENTION, True), "rest": False, "basis": "source"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("release")
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path, required=True, help="the release's srt/models")
    parser.add_argument("--observed", type=Path, nargs="+", required=True, help="observations, of any release")
    parser.add_argument("--observed-models", type=Path, required=True, help="srt/models of the release observed most")
    args = parser.parse_args()
    sources = Sources(args.models)
    observed = sources if args.observed_models == args.models else Sources(args.observed_models)
    rows = [json.loads(line) for path in args.observed for line in path.read_text(encoding="utf-8").splitlines()]
    made = Views(args.release, sources, observed, rows)
    views: dict[str, list[str]] = defaultdict(list)
    for architecture in [FALLBACK, *sorted(sources.registry)]:
        views[json.dumps(made.view(architecture), sort_keys=True)].append(architecture)
    table = {
        "made_by": f"scripts/extract_layer_views.py {args.release} engine/sglang/releases",
        "views": [{**json.loads(view), "architectures": names} for view, names in sorted(views.items())],
    }
    target = args.out / args.release / "layer_views.json"
    target.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
