"""How an architecture's layers appear to the engine's prefill graph: release data, ``layer_views.json``.

The file is made by ``scripts/extract_layer_views.py`` from the engine's own model classes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.sglang.releases import known_releases, release_named
from engine.sglang.resolution import Resolution

FALLBACK = "*"
"""The architectures that the release's registry does not hold: the engine wraps Transformers' own class."""

ANY = "*"
"""Stands for every kind of layer, where the engine's layers are not those that config.json counts."""

_MIXTRAL = ("fp8", "compressed-tensors", "gptq_marlin", "awq_marlin", "quark_int4fp8_moe")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView:
    """What the engine sees of one architecture.

    ``without`` is what the model lacks ("language model", "layers"; None: nothing). ``seen`` says for each kind of
    layer whether its attention can be addressed: True, False, or "some" where the config alone does not tell which;
    ``rest`` for every other kind. ``moe`` are the kinds with an expert block; ``hybrid_graph`` the compute
    capabilities (120 for 12.0) on which the class takes layers of experts without attention. ``stages``: a pipeline
    stage knows the range of its own layers. ``basis``: "built" or "assumed".
    """

    without: str | None
    seen: Mapping[str, bool | str]
    rest: bool
    moe: frozenset[str]
    hybrid_graph: frozenset[int]
    stages: bool
    basis: str


def view_of(r: Resolution) -> LayerView:
    """The view of the class that the engine loads for this launch."""
    views = _views(r.release.text)
    return views.get(_loaded(r, views)) or views[FALLBACK]


def unseen_kinds(r: Resolution, view: LayerView) -> tuple[str, ...]:
    """The kinds of layers whose attention the engine cannot address, in the order of the model's layers."""
    if view.rest and not view.seen:
        return ()
    seen, rest = view.seen, view.rest
    if ANY in seen:
        return () if seen[ANY] is True else ("attention",)
    kinds = dict.fromkeys(r.model.facts.layer_kinds)
    if not kinds:
        return () if all(value is True for value in seen.values()) and rest else ("attention",)
    return tuple(kind for kind in kinds if seen.get(kind, rest) is not True)


def _loaded(r: Resolution, views: Mapping[str, LayerView]) -> str:
    """The architecture whose class is built (``get_model_architecture``)."""
    model = r.model
    if r.args.model_impl == "transformers":
        return FALLBACK
    if model.is_embedding_gemma and r.since(0, 5, 17):
        return "EmbeddingGemmaModel"
    architectures = model.architectures
    if "MixtralForCausalLM" in architectures and model.quantization not in (None, *_MIXTRAL):
        return "QuantMixtralForCausalLM"
    return next((name for name in architectures if name in views), FALLBACK)


def _table(release: str) -> dict[str, Any]:
    """The release's own table, or that of the next newer release that has one."""
    known = known_releases()
    for name in known[known.index(release) :]:
        with contextlib.suppress(KeyError):
            table: dict[str, Any] = release_named(name).table("layer_views")
            return table
    raise KeyError("no release has a table layer_views")


@cache
def _views(release: str) -> dict[str, LayerView]:
    table = _table(release)
    out: dict[str, LayerView] = {}
    for row in table["views"]:
        seen = row.get("seen")
        view = LayerView(
            without=row.get("without"),
            seen=seen if isinstance(seen, dict) else {},
            rest=row.get("rest", True) if isinstance(seen, dict) else seen == "all",
            moe=frozenset(row.get("moe", ())),
            hybrid_graph=frozenset(row.get("hybrid_graph", ())),
            stages=row.get("stages", True),
            basis=row.get("basis", "built"),
        )
        out |= dict.fromkeys(row["architectures"], view)
    return out
