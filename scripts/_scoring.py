"""How a prediction is compared with what the real engine said: the shares, and the differences by kind.

Counted are, in percent: outcome; backends (both phases, of resolved launches); graph (every field of both phases); args
(chunk and page size, the three attention backends, and the memory fraction to 0.0015, all at once); error (stage and
type, of refused launches); message (its words, where both refuse).
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

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
            for what in ("outcome", "backends", "graph", "args", "error", "message", "answered")
            if self.seen[what]
        )
        return "\n".join([*lines, " ".join(shares) + f" n={self.seen['outcome']}"])


def compare(
    case: dict[str, Any], ours: Mapping[str, Any], tally: Tally, *, makers: Mapping[str, str], where: str
) -> None:
    """Count one case: its ``engine_says`` against the prediction ``ours``, both as JSON.

    ``makers`` names the step that made each value, ``where`` the step that refused; empty where that is not known.
    """
    engine = case["engine_says"]
    same = engine["outcome"] == ours.get("outcome")
    engine_error, our_error = engine.get("error") or {}, ours.get("error") or {}
    words = (engine_error.get("message") or our_error.get("message") or "")[:110]
    tally.count("outcome", same, case, step=where, note=f"{engine['outcome']} -> {ours.get('outcome')}: {words}")
    if engine["outcome"] == "refused":
        ok = same and all(engine_error[key] == our_error.get(key) for key in ("stage", "type"))
        note = " -> ".join(f"{e.get('type')} {e.get('message', '')[:80]}" for e in (engine_error, our_error))
        tally.count("error", ok, case, step=where, note=note if same else "outcome")
        if same:
            tally.count(
                "message", engine_error["message"] == our_error.get("message", "")[:600], case, step=where, note=note
            )
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
